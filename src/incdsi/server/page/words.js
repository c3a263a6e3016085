// The query's words inside a text: a snippet around them, and marks on them.

const COMMON = new Set(
  ("a an and are as at be but by can do does for from has have how i if in into is it its my no not of on or so " +
    "that the their then there these this to until was what when where which who why will with you your").split(" "),
);
const WORD = /[\p{L}\p{N}_]+/gu;

/** The words worth marking: the uncommon ones, or all of them if all are common. */
export function wordsOf(query) {
  const words = [...new Set((query.toLowerCase().match(WORD) ?? []).map(stem))];
  const telling = words.filter((word) => !COMMON.has(word));
  return telling.length > 0 ? telling : words;
}

function stem(word) {
  if (word.length > 5 && word.endsWith("ing")) return word.slice(0, -3);
  if (word.length > 4 && word.endsWith("es")) return word.slice(0, -2);
  return word.length > 3 && word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : word;
}

/** Where words of the query begin and end in a text. */
function occurrences(text, words) {
  const found = [];
  for (const match of text.matchAll(WORD)) {
    const word = match[0].toLowerCase();
    const same = words.find((one) => word === one || (one.length > 2 && stem(word) === one) || (one.length > 3 && word.startsWith(one)));
    if (same) found.push({ start: match.index, end: match.index + match[0].length, word: same });
  }
  return found;
}

/** The stretch of a text with the most different words of the query. */
export function snippet(text, query, length = 230) {
  const flat = text.slice(0, 20000).replace(/\s+/g, " ").trim();
  if (flat.length <= length) return flat;
  const found = occurrences(flat, wordsOf(query));
  let best = { start: 0, count: 0 };
  for (const { start } of found) {
    const inside = new Set(found.filter((one) => one.start >= start && one.end <= start + length - 40).map((one) => one.word));
    if (inside.size > best.count) best = { start, count: inside.size };
  }
  const begin = best.start < length / 2 ? 0 : flat.lastIndexOf(" ", best.start - 36) + 1;
  const cut = flat.slice(begin, begin + length);
  const end = begin + length < flat.length ? cut.lastIndexOf(" ") : cut.length;
  return `${begin > 0 ? "… " : ""}${cut.slice(0, end)}${begin + end < flat.length ? " …" : ""}`;
}

/** A text as nodes, the query's words inside mark elements. */
export function marked(text, query) {
  const nodes = [];
  let last = 0;
  for (const { start, end } of occurrences(text, wordsOf(query))) {
    const mark = document.createElement("mark");
    mark.textContent = text.slice(start, end);
    nodes.push(text.slice(last, start), mark);
    last = end;
  }
  return [...nodes, text.slice(last)];
}
