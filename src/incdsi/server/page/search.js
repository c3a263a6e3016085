// The search box: results as one types, the newest question wins, and the address remembers it.
import { Problem, ServerGone, search } from "./api.js";
import { byId, make } from "./dom.js";
import { emit } from "./events.js";
import { count, milliseconds, plural } from "./numbers.js";
import { showResults } from "./results.js";

const DELAY = 140; // milliseconds without a key before a search goes out
const input = byId("query");
const form = byId("search");

const REST = 1500; // milliseconds after which a question is taken as asked, not half typed

let timer = 0;
let resting = 0;
let kept = false; // whether the server keeps what people ask
let asked = ""; // the question it was told last
let running = new AbortController();
let documents = null; // how many there are, once known
let examples = []; // titles to begin with

export const currentQuery = () => input.value.trim();
export const currentMode = () => form.elements.mode.value;

export const keepQuestions = (keep) => (kept = keep);

/** Put a question into the box and ask it. */
export function ask(query) {
  input.value = query;
  input.focus();
  run();
  settled();
}

/** Whoever acts on the results meant the question: it goes into the server's log, if there is one, and half-typed ones do not. */
export function settled() {
  clearTimeout(resting);
  if (!kept || !currentQuery() || currentQuery() === asked) return;
  asked = currentQuery();
  search(asked, currentMode(), undefined, { k: 1 }).catch(() => {});
}

/** Search for what is in the box now. @param {{moving?: boolean, taught?: string | null}} [options] see showResults */
export async function run(options = {}) {
  clearTimeout(timer);
  running.abort();
  running = new AbortController();
  const { signal } = running;
  remember();
  const query = currentQuery();
  if (!query) return showNothing();
  try {
    clearTimeout(resting);
    resting = setTimeout(settled, REST);
    const found = await search(query, currentMode(), signal, { log: false });
    if (!signal.aborted) show(found, query, options);
  } catch (error) {
    if (error.name !== "AbortError") say(error instanceof ServerGone ? "Not searched: the server does not answer." : sentence(error));
  }
}

const sentence = (error) => (error instanceof Problem ? error.message : "The search failed.");
const say = (text) => (byId("status").textContent = text);

function show({ hits, seconds }, query, options) {
  const all = documents === null ? "" : ` of ${count(documents)}`;
  say(`${hits.length}${all} ${documents === 1 ? "document" : "documents"} · ${milliseconds(1000 * seconds)} ms`);
  byId("empty").replaceChildren(...(hits.length === 0 ? nothingFound() : []));
  showResults(hits, query, options);
  emit("searched", { query, hits });
}

function showNothing() {
  say("");
  showResults([], "");
  byId("empty").replaceChildren(...(documents === 0 ? emptyIndex() : welcome()));
  emit("searched", { query: "", hits: [] });
}

function welcome() {
  return [
    make("h3", {}, "It learns while you watch."),
    make(
      "ol",
      {},
      make("li", {}, documents === null ? "Type a question: results come as you type." : `Type a question: ${plural(documents, "document")} answer as you type.`),
      make("li", {}, "The right one is not on top? Press “This is the one”. That question finds it from now on, and no other document’s vector changes."),
      make("li", {}, "Add a document of your own, or drop a file on the page: it is found at once, without retraining."),
    ),
    examples.length > 0 && make("div", { class: "examples" }, "Begin with", ...examples.map(example)),
  ].filter(Boolean);
}

function example(title) {
  return make("button", { type: "button", onclick: () => ask(title) }, title);
}

/** Titles of a few documents, for a page without a question. */
export function setExamples(titles) {
  const fitting = titles.filter((title) => title.length > 3 && title.length < 36);
  examples = [0.15, 0.4, 0.62, 0.85].map((share) => fitting[Math.floor(share * fitting.length)]).filter(Boolean);
  examples = [...new Set(examples)];
  if (!currentQuery()) showNothing();
}

const nothingFound = () => [make("h3", {}, "Nothing found."), make("p", {}, documents > 0 ? "No document shares a word with this question; fused and learned search do not need one." : "There is no document here yet: add one, and it is found milliseconds later.")];

const emptyIndex = () => [make("h3", {}, "Nothing here yet."), make("p", {}, "Add the first document, or drop a file here: CSV, JSONL, Markdown, Parquet or plain text.")];

/** The number of documents changed; a page without a question says how many there are. */
export function setDocuments(number) {
  const before = documents;
  documents = number;
  if (before !== number && !currentQuery()) showNothing();
}

function remember() {
  const address = new URL(location.href);
  address.search = "";
  if (currentQuery()) address.searchParams.set("q", currentQuery());
  if (currentMode() !== "fused") address.searchParams.set("mode", currentMode());
  history.replaceState(null, "", address);
}

export function connectSearch() {
  const asked = new URL(location.href).searchParams;
  input.value = asked.get("q") ?? "";
  const mode = [...form.elements.mode].find((radio) => radio.value === asked.get("mode"));
  if (mode) mode.checked = true;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(run, DELAY);
  });
  form.addEventListener("change", (event) => event.target.name === "mode" && run({ moving: true }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
    settled();
  });
}
