// What the parts of the page tell each other; they do not know who listens.
//
//   searched  {query, hits}            the results on screen are these
//   focused   {id, title}              a document is being looked at
//   leaving   {id}                     a document is about to be deleted here
//   changed   {id, kind}               a document was added, edited, taught or deleted here
//   loaded                             many documents came or went here
//   back                               the server answers again

const target = new EventTarget();

/** @param {string} name @param {object} [detail] */
export function emit(name, detail = {}) {
  target.dispatchEvent(new CustomEvent(name, { detail }));
}

/** @param {string} name @param {(detail: any) => void} handler */
export function on(name, handler) {
  target.addEventListener(name, (event) => handler(event.detail));
}
