// What people ask and the index answers badly, each with the documents that may be meant: one press teaches.
import * as api from "./api.js";
import { byId, icon, make } from "./dom.js";
import { openAdd } from "./editor.js";
import { emit } from "./events.js";
import { count, plural } from "./numbers.js";
import { confidence } from "./results.js";
import { ask, run } from "./search.js";

const dialog = byId("gaps");
const list = byId("gaps-list");
let kept = false; // whether the server keeps what people ask

/** @param {{queries: boolean}} logs */
export const setLogs = (logs) => (kept = logs.queries);

export async function openGaps() {
  list.replaceChildren();
  dialog.showModal();
  if (!kept) return say("This server does not keep what people ask. Start it with --log-queries FILE, and the questions it answers badly are listed here.");
  say("Asking it all again…");
  try {
    show(await api.gaps());
  } catch (error) {
    say(error.message);
  }
}

const say = (text) => (byId("gaps-says").textContent = text);

function show({ gaps, queries }) {
  const asked = `${plural(queries, "different question")} asked so far`;
  if (gaps.length === 0) return say(queries === 0 ? "Nobody has asked anything yet." : `Nothing is missing: ${asked}, and each has an answer.`);
  say(`${count(gaps.length)} of ${asked}. Press the right document, and that question finds it from now on.`);
  list.replaceChildren(...gaps.map(card));
  list.querySelector("button")?.focus();
}

const REASONS = { "nothing found": "nothing was found", "low confidence": "the best answer is a guess", "no word in common": "no answer shares a word with it" };

function card(gap) {
  const element = make(
    "li",
    { "data-query": gap.query },
    make("h3", {}, `“${gap.query}”`),
    make("p", { class: "gap-why" }, `asked ${gap.times === 1 ? "once" : `${count(gap.times)} times`}; ${REASONS[gap.reason]}`),
    make("ul", { class: "candidates" }, ...gap.candidates.map((one) => candidate(gap, one))),
    make(
      "div",
      { class: "gap-acts" },
      make("button", { type: "button", class: "quiet", "aria-label": `Search for ${gap.query}`, onclick: () => leave(() => ask(gap.query)) }, icon("lens"), "Search"),
      make("button", { type: "button", class: "quiet", "aria-label": `Write a document that answers ${gap.query}`, onclick: () => leave(() => openAdd({ queries: gap.query })) }, icon("plus"), "Write the answer"),
    ),
  );
  return element;
}

function candidate(gap, { id, title, confidence: sure }) {
  const name = title || id;
  return make(
    "li",
    {},
    make("span", { class: "candidate" }, name, title && title !== id && make("span", { class: "id" }, id)),
    confidence(sure),
    make("button", { type: "button", class: "quiet one", "aria-label": `This is the one for ${gap.query}: ${name}`, onclick: (event) => teach(event.target.closest("[data-query]"), gap, id, name) }, icon("check"), "This is the one"),
  );
}

function leave(then) {
  dialog.close();
  then();
}

async function teach(element, gap, id, name) {
  const buttons = [...element.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  try {
    const { rank_after: rank } = await api.teach(gap.query, id);
    settle(element, rank === 1 ? `“${gap.query}” now finds ${name}.` : `“${gap.query}” was taught to ${name}.`);
    emit("changed", { id, kind: "taught" });
    await run({ moving: true });
  } catch (error) {
    for (const button of buttons) button.disabled = false;
    element.querySelector(".gap-why").textContent = `Not taught: ${error.message}`;
  }
}

/** A gap that is closed says so; the next one gets the focus. */
function settle(element, text) {
  element.className = "closed";
  element.replaceChildren(icon("check"), make("p", { role: "status" }, text));
  (list.querySelector("li[data-query]:not(.closed) .candidates button") ?? byId("gaps-close")).focus();
}

export function connectGaps() {
  byId("open-gaps").addEventListener("click", openGaps);
  byId("gaps-close").addEventListener("click", () => dialog.close());
}
