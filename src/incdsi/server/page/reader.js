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

/** Open a document by its id. */
export async function openReader(id) {
  try {
    show(await api.read(id));
  } catch (error) {
    toast(`Not opened: ${error.message}`);
  }
}

function show(document) {
  shown = document;
  const query = currentQuery();
  byId("reader-heading").replaceChildren(...marked(titleOf(document), query));
  byId("reader-id").textContent = document.id;
  byId("reader-text").replaceChildren(...marked(document.text, query));
  byId("reader-text").scrollTop = 0;
  byId("reader-asked").replaceChildren(...document.queries.map((text) => make("li", {}, text)));
  byId("reader-asked-part").hidden = document.queries.length === 0;
  dialog.querySelector("[data-act=teach]").hidden = !query;
  if (!dialog.open) dialog.showModal();
  emit("focused", { id: document.id, title: titleOf(document) });
}

/** @param {(kind: string, document: object) => void} act what the buttons do */
export function connectReader(act) {
  dialog.addEventListener("click", (event) => {
    const kind = event.target.closest("[data-act]")?.dataset.act;
    if (event.target === dialog || kind) dialog.close(); // the dialog itself is only hit outside its content
    if (kind && kind !== "close") act(kind, shown);
  });
}
