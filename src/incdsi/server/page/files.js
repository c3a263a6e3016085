// Files dropped on the page, or chosen: sent one after another, each added whole or not at all.
import * as api from "./api.js";
import { byId, make } from "./dom.js";
import { emit } from "./events.js";
import { count, plural } from "./numbers.js";
import { run } from "./search.js";
import { toast } from "./toast.js";

const list = byId("files");
const chooser = byId("choose-files");
const waiting = [];
let busy = false;
let depth = 0; // of elements that something is dragged over

const mayWrite = () => document.documentElement.dataset.access === "write";

export const chooseFiles = () => mayWrite() && chooser.click();

/** @param {Iterable<File>} files */
function take(files) {
  for (const file of files) waiting.push({ file, row: row(file), options: {} });
  next();
}

async function next() {
  if (busy || waiting.length === 0) return;
  busy = true;
  const one = waiting.shift();
  await send(one);
  busy = false;
  next();
}

function row({ name }) {
  const close = make("button", { type: "button", class: "quiet small", "aria-label": `Close the message about ${name}`, hidden: true, onclick: () => remove(element) }, "Close");
  const element = make(
    "li",
    { "data-file": name },
    make("div", { class: "file-line" }, make("strong", {}, name), close),
    make("progress", { max: 1, value: 0, "aria-label": `Progress of ${name}` }),
    make("p", { class: "file-says" }, "Waiting its turn"),
    make("div", { class: "file-asks" }),
  );
  list.append(element);
  byId("files-part").hidden = false;
  return element;
}

function remove(element) {
  element.remove();
  byId("files-part").hidden = list.children.length === 0;
}

function say(element, text) {
  element.querySelector(".file-says").textContent = text;
}

/** @param {{stage: "sending" | "reading" | "adding" | "tuning", done: number, of: number}} step */
function showStep(element, { stage, done, of }) {
  const bar = element.querySelector("progress");
  if (stage === "reading") bar.removeAttribute("value");
  else bar.value = of > 0 ? done / of : 0;
  const words = {
    sending: () => `Sending: ${Math.round((100 * done) / Math.max(of, 1))} %`,
    reading: () => "Reading it",
    adding: () => `Adding: ${count(done)} of ${plural(of, "document")}`,
    tuning: () => "Added. The index tunes itself",
  };
  say(element, words[stage]());
}

async function send(one) {
  const { file, row: element, options } = one;
  element.className = "";
  element.querySelector("progress").hidden = false;
  element.querySelector(".file-asks").replaceChildren();
  try {
    showDone(element, await api.sendFile(file, options, (step) => showStep(element, step)));
  } catch (error) {
    refuse(one, error);
  }
  element.querySelector("progress").hidden = true;
  element.querySelector("button").hidden = false;
}

function showDone(element, { name, documents, created, conflicts, ids, milliseconds }) {
  const replaced = documents - created;
  const parts = [created > 0 || replaced === 0 ? `${plural(created, "document")} added` : "", replaced > 0 ? `${count(replaced)} replaced` : "", conflicts > 0 ? `${count(conflicts)} in conflict with others alike` : ""];
  element.className = "done";
  say(element, `${parts.filter(Boolean).join(", ")} in ${(milliseconds / 1000).toFixed(1)} s.`);
  emit("loaded");
  if (replaced === 0 && ids.length === documents) toast(`Added ${plural(documents, "document")} from “${name}”.`, { undo: () => takeBack(ids, element) });
  run({ moving: true });
}

async function takeBack(ids, element) {
  try {
    await api.removeMany(ids);
  } catch (error) {
    return toast(`Not taken back: ${error.message}`);
  }
  remove(element);
  emit("loaded");
  await run({ moving: true });
}

/** One sentence, and what can be done about it. */
function refuse(one, error) {
  const { row: element, options } = one;
  const again = (more) => {
    waiting.unshift({ ...one, options: { ...options, ...more } });
    next();
  };
  element.className = "refused";
  say(element, `Nothing was added. ${readable(error.message, one.file.name)}`);
  const asks = element.querySelector(".file-asks");
  if (error.error === "DuplicateDocument" && !error.message.includes("already used at")) {
    asks.append(make("button", { type: "button", onclick: () => again({ replace: true }) }, "Replace what is there"));
  } else if (/(id|text)_field/.test(error.message)) {
    asks.append(columns(options, again));
  } else if (error instanceof api.ServerGone) {
    asks.append(make("button", { type: "button", onclick: () => again({}) }, "Try again"));
  }
}

/** The server's sentence under the name of the file: "docs.csv:2: not valid JSON" is "Line 2: not valid JSON". */
function readable(text, name) {
  const own = text.startsWith(`${name}:`) ? text.slice(name.length + 1).trim().replace(/^(\d+): /, "line $1: ") : text;
  const plain = own.replace(/^expected a new id, found '(.*)' in the index; .*$/, "“$1” is in the index already.").replace(/;[^;]*(id|text)_field[^;]*$/, ". Name the columns to use:");
  return plain[0].toUpperCase() + plain.slice(1);
}

function columns(options, again) {
  const field = (name, label, value) => make("label", {}, label, make("input", { name, value, spellcheck: "false", autocomplete: "off" }));
  const form = make("form", { class: "columns" }, field("id_field", "Id column", options.id_field ?? "id"), field("title_field", "Title column", options.title_field ?? ""), field("text_field", "Text column", options.text_field ?? "text"), make("button", { type: "submit" }, "Try again"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    again(Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value)));
  });
  return form;
}

const hasFiles = (event) => mayWrite() && event.dataTransfer?.types.includes("Files") && !document.querySelector("dialog[open]:not(#editor)");

export function connectFiles() {
  chooser.addEventListener("change", () => {
    byId("editor").close();
    take(chooser.files);
    chooser.value = "";
  });
  byId("open-files").addEventListener("click", chooseFiles);
  const over = (by) => {
    depth = Math.max(0, depth + by);
    byId("drop").hidden = depth === 0;
  };
  document.addEventListener("dragenter", (event) => hasFiles(event) && over(1));
  document.addEventListener("dragleave", () => over(-1));
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    over(-depth);
    if (!hasFiles(event)) return;
    event.preventDefault();
    byId("editor").close();
    take(event.dataTransfer.files);
  });
}
