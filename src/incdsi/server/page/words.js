// Marks on words: those of a snippet where the index found them, those of a title or text by how they begin.

const COMMON = new Set(
  ("a an and are as at be but by can do does for from has have how i if in into is it its my no not of on or so " +
    "that the their then there these this to until was what when where which who why will with you your").split(" "),
);
const WORD = /[\p{L}\p{N}_]+/gu;

/** The words worth marking: the uncommon ones, or all of them if all are common. */
function wordsOf(query) {
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
    const same = words.some((one) => word === one || (one.length > 2 && stem(word) === one) || (one.length > 3 && word.startsWith(one)));
    if (same) found.push([match.index, match.index + match[0].length]);
  }
  return found;
}

/** A text as nodes, the query's words inside mark elements. */
export const marked = (text, query) => withMarks(text, occurrences(text, wordsOf(query)));

/** A snippet as nodes; its marks count code points, which JavaScript's strings do not. */
export const shown = ({ text, marks }) => withMarks([...text], marks);

/** @param {string | string[]} text @param {[number, number][]} marks */
function withMarks(text, marks) {
  const cut = (start, end) => (typeof text === "string" ? text.slice(start, end) : text.slice(start, end).join(""));
  const nodes = [];
  let last = 0;
  for (const [start, end] of marks) {
    const mark = document.createElement("mark");
    mark.textContent = cut(start, end);
    nodes.push(cut(last, start), mark);
    last = end;
  }
  return [...nodes, cut(last)];
}
