// One document, whole: its text, what people asked for it, and what one can do with it.
import * as api from "./api.js";
import { byId, make } from "./dom.js";
import { emit } from "./events.js";
import { titleOf } from "./results.js";
import { currentQuery } from "./search.js";
import { toast } from "./toast.js";
import { marked } from "./words.js";

const dialog = byId("reader");
let shown = null;

/** Open a document by its id, at a passage if one is given. @param {string} id @param {{start: number, end: number}} [passage] */
export async function openReader(id, passage) {
  try {
    show(await api.read(id), passage);
  } catch (error) {
    toast(`Not opened: ${error.message}`);
  }
}

function show(document, passage) {
  shown = document;
  const query = currentQuery();
  byId("reader-heading").replaceChildren(...marked(titleOf(document), query));
  byId("reader-id").textContent = document.id;
  byId("reader-text").replaceChildren(...(passage ? withPassage(document.text, passage, query) : marked(document.text, query)));
  byId("reader-asked").replaceChildren(...document.queries.map((text) => make("li", {}, text)));
  byId("reader-asked-part").hidden = document.queries.length === 0;
  dialog.querySelector("[data-act=teach]").hidden = !query;
  if (!dialog.open) dialog.showModal();
  scrollToPassage();
  emit("focused", { id: document.id, title: titleOf(document) });
}

/** The text, with the passage set off; it is counted in code points, which JavaScript's strings do not. */
function withPassage(text, { start, end }, query) {
  const points = [...text];
  const cut = (from, to) => points.slice(from, to).join("");
  return [...marked(cut(0, start), query), make("span", { class: "here" }, ...marked(cut(start, end), query)), ...marked(cut(end), query)];
}

function scrollToPassage() {
  const box = byId("reader-text");
  const here = box.querySelector(".here");
  box.scrollTop = here ? here.offsetTop - box.offsetTop - 24 : 0;
}

/** @param {(kind: string, document: object) => void} act what the buttons do */
export function connectReader(act) {
  dialog.addEventListener("click", (event) => {
    const kind = event.target.closest("[data-act]")?.dataset.act;
    if (event.target === dialog || kind) dialog.close(); // the dialog itself is only hit outside its content
    if (kind && kind !== "close") act(kind, shown);
  });
}
