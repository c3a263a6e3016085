// Shortcuts. Single keys never act while one types, and can be switched off.
import { byId, typing } from "./dom.js";
import { openAdd } from "./editor.js";
import { chooseFiles } from "./files.js";
import { openGaps } from "./gaps.js";
import { inBrowser } from "./kept.js";
import { walk } from "./results.js";
import { undoLast } from "./toast.js";

const KEPT = "incdsi-single-keys";
const ON_RESULT = { t: "teach", e: "edit", Delete: "remove" };
const ANYWHERE = {
  "/": () => {
    byId("query").focus();
    byId("query").select();
  },
  a: () => byId("open-add").checkVisibility() && openAdd(),
  f: chooseFiles,
  g: () => byId("open-gaps").checkVisibility() && openGaps(),
  m: () => byId("map").focus(),
  u: undoLast,
  "?": () => byId("shortcuts").showModal(),
};

/** @param {(event: Event, kind: string) => boolean} actOn acts on the result that has the focus */
export function connectKeyboard(actOn) {
  const box = byId("single-keys");
  box.checked = inBrowser.get(KEPT) !== "off";
  box.addEventListener("change", () => inBrowser.set(KEPT, box.checked ? "on" : "off"));
  byId("open-shortcuts").addEventListener("click", ANYWHERE["?"]);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (arrow(event) || (!typing(event.target) && box.checked && single(event, actOn))) event.preventDefault();
  });
}

function arrow(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const here = event.target.closest?.("#query, #results");
  if (!step || !here || (here.id === "query" && step < 0)) return false;
  walk(step);
  return true;
}

function single(event, actOn) {
  if (ON_RESULT[event.key] && actOn(event, ON_RESULT[event.key])) return true;
  if (!ANYWHERE[event.key] || event.target.id === "map") return false;
  ANYWHERE[event.key]();
  return true;
}
