// Add a document or edit one; what was typed stays until the server has it.
import * as api from "./api.js";
import { byId, make } from "./dom.js";
import { emit } from "./events.js";
import { openReader } from "./reader.js";
import { showReceipt } from "./receipt.js";
import { titleOf } from "./results.js";
import { run } from "./search.js";
import { toast } from "./toast.js";

const dialog = byId("editor");
const field = (name) => byId(`editor-${name}`);
let original = null; // the document being edited; null while adding
let sent = { content: "", key: "" }; // what was last sent to be added, until it was answered

/** @param {{queries?: string}} [given] questions that it should answer */
export function openAdd({ queries } = {}) {
  if (original !== null) fill({ id: "", title: "", text: "" });
  original = null;
  if (queries) field("queries").value = queries;
  show("Add a document", "Add document");
}

export async function openEdit({ id }) {
  try {
    original = await api.read(id);
  } catch (error) {
    return toast(`Not opened: ${error.message}`);
  }
  fill(original);
  show("Edit", "Save");
}

function fill({ id, title, text }) {
  field("id").value = id;
  field("title").value = title;
  field("text").value = text;
  field("queries").value = "";
}

function show(heading, save) {
  byId("editor-heading").textContent = heading;
  field("save").textContent = save;
  field("id").readOnly = original !== null;
  field("id-hint").hidden = original !== null;
  byId("editor-files").hidden = original !== null;
  complain("");
  dialog.showModal();
  field(original === null ? "title" : "text").focus();
}

function complain(sentence) {
  field("problem").textContent = sentence;
  field("problem").hidden = !sentence;
}

function typed() {
  const title = field("title").value.trim();
  const queries = field("queries").value.split("\n").map((line) => line.trim()).filter(Boolean);
  field("id").value = field("id").value.trim() || idFrom(title);
  return { id: field("id").value, title, text: field("text").value, queries };
}

/** A readable id from a title, with a little chance in it so that two of the same title can live together. */
function idFrom(title) {
  const words = title.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ["document"];
  return `${words.join("-").slice(0, 60)}-${api.randomId().slice(0, 4)}`;
}

async function save() {
  field("save").disabled = true;
  complain("");
  try {
    await (original === null ? saveNew(typed()) : saveEdited(typed(), original));
  } catch (error) {
    const gone = error instanceof api.ServerGone;
    complain(gone ? "Not saved: the server does not answer. What you typed is kept; save again when it is back." : error.message);
  } finally {
    field("save").disabled = false;
  }
}

/** The same key for the same document: one whose answer was lost is not added twice. */
function onceKey(document) {
  const content = JSON.stringify(document);
  if (sent.content !== content) sent = { content, key: api.randomId() };
  return sent.key;
}

async function saveNew(document) {
  const outcome = await api.add(document, onceKey(document));
  sent = { content: "", key: "" };
  fill({ id: "", title: "", text: "" });
  dialog.close();
  showReceipt(["Added ", make("strong", {}, titleOf(document))], outcome, openReader);
  emit("changed", { id: document.id, kind: "added" });
  toast(`Added “${titleOf(document)}”.`, { undo: () => takeBack(document) });
  await run({ moving: true });
}

async function takeBack(document) {
  try {
    await api.remove(document.id);
  } catch (error) {
    return toast(`Not taken back: ${error.message}`);
  }
  emit("changed", { id: document.id, kind: "deleted" });
  await run({ moving: true });
}

async function saveEdited({ title, text, queries }, before) {
  const outcome = await changeFrom(before, { title, text, queries });
  dialog.close();
  showReceipt(["Saved ", make("strong", {}, title || before.id)], outcome, openReader);
  emit("changed", { id: before.id, kind: "edited" });
  toast(`Saved “${title || before.id}”.`, { undo: () => editBack(before, queries) });
  await run({ moving: true });
}

/** Change a document only if it still is what was read; changes of other documents do not matter. */
async function changeFrom(before, body) {
  for (let attempt = 1; ; attempt++) {
    const now = await api.read(before.id);
    if (now.title !== before.title || now.text !== before.text) {
      throw new Error("Someone else changed this document meanwhile; copy your text, close, and edit again.");
    }
    try {
      return await api.change(before.id, body, now.version);
    } catch (error) {
      if (error.status !== 412 || attempt === 5) throw error;
    }
  }
}

async function editBack(before, queries) {
  try {
    await api.change(before.id, { title: before.title, text: before.text });
  } catch (error) {
    return toast(`Not undone: ${error.message}`, { undo: () => editBack(before, queries) });
  }
  emit("changed", { id: before.id, kind: "edited" });
  toast(queries.length > 0 ? "Title and text are as they were; the new questions stay." : "As it was.");
  await run({ moving: true });
}

export function connectEditor() {
  byId("open-add").addEventListener("click", () => openAdd());
  field("cancel").addEventListener("click", () => dialog.close());
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });
  field("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) dialog.querySelector("form").requestSubmit();
  });
}
