// The list of hits: drawn, walked with the arrow keys, and moved when the ranking changed.
import { byId, calm, icon, make } from "./dom.js";
import { emit } from "./events.js";
import { decimal } from "./numbers.js";
import { marked, shown } from "./words.js";

/**
 * @typedef {{id: string, title: string}} Document
 * @typedef {{text: string, marks: [number, number][]}} Snippet
 * @typedef {{headings: string[], start: number, end: number, snippet: Snippet}} Passage
 * @typedef {{rank: number, score: number, learned: number | null, nearest: number | null, lexical: number | null, confidence: number | null, document: Document, passages: Passage[], snippet: Snippet}} Hit
 */

const list = byId("results");
let hits = /** @type {Hit[]} */ ([]);

export const titleOf = (document) => document.title || document.id;
export const hitOf = (id) => hits.find((hit) => hit.document.id === id) ?? null;

/**
 * Show hits; rows that were there move from their old place to the new one if `moving`.
 * @param {Hit[]} found @param {string} query @param {{moving?: boolean, taught?: string | null}} [options]
 */
export function showResults(found, query, { moving = false, taught = null } = {}) {
  const places = moving && !calm() ? placesById() : new Map();
  const focus = focusInside();
  hits = found;
  const best = Math.max(...hits.map(positiveParts), 1e-9);
  list.replaceChildren(...hits.map((hit) => row(hit, query, best, hit.document.id === taught)));
  list.dataset.query = query;
  restoreFocus(focus);
  for (const element of list.children) slide(element, places.get(element.dataset.id));
}

function row(hit, query, best, taught) {
  const { document, rank } = hit;
  return make(
    "li",
    { class: taught ? "result taught" : "result", "data-id": document.id },
    make("span", { class: "rank" }, make("span", { class: "unseen" }, "Rank "), String(rank)),
    make(
      "article",
      { "aria-label": titleOf(document) },
      make(
        "div",
        { class: "title-line" },
        make("h3", {}, make("button", { type: "button", class: "title", "data-act": "open" }, ...marked(titleOf(document), query))),
        document.title && document.title !== document.id && make("span", { class: "id" }, document.id),
        confidence(hit.confidence),
      ),
      ...(hit.passages.length > 0 ? passages(hit) : [make("p", { class: "snippet" }, ...shown(hit.snippet))]),
      make("div", { class: "foot" }, scores(hit, best), acts(document)),
    ),
  );
}

/** The passage of a long document that matches best, and the next ones behind a press. */
function passages({ document, passages: [first, ...more] }) {
  const shownMore = more.length > 0 && make("details", { class: "more" }, make("summary", {}, `${more.length} more ${more.length === 1 ? "passage" : "passages"}`), ...more.map((one, place) => passage(document, one, place + 1)));
  return [passage(document, first, 0), ...(shownMore ? [shownMore] : [])];
}

function passage(document, { headings, snippet }, place) {
  const path = headings.filter((heading) => heading !== document.title).join(" \u203a ");
  const open = make("button", { type: "button", class: "path", "data-act": "open", "data-passage": place, title: "Read it here" }, path || "Read it here");
  return make("div", { class: "passage" }, open, make("p", { class: "snippet" }, ...shown(snippet)));
}

const SURE = 0.7;
const UNSURE = 0.4;

/** How probably a document is the right one, in words and as a mark; nothing while the index cannot tell. */
export function confidence(value) {
  if (value === null) return null;
  const level = value >= SURE ? "sure" : value >= UNSURE ? "maybe" : "guess";
  const why = "How probably this is the right document, judged by the questions held out";
  const share = value > 0.99 ? "over 99" : value < 0.01 ? "under 1" : String(Math.round(100 * value));
  return make("span", { class: `confidence ${level}`, title: why }, `${share} % sure`);
}

const PARTS = ["learned", "nearest", "lexical"];
const positiveParts = (hit) => PARTS.reduce((sum, part) => sum + Math.max(hit[part] ?? 0, 0), 0);

function scores(hit, best) {
  const bar = make("span", { class: "bar", "aria-hidden": "true" });
  const words = [];
  for (const part of PARTS) {
    if (hit[part] === null) continue;
    const piece = make("i", { class: part });
    piece.style.width = `${(100 * Math.max(hit[part], 0)) / best}%`;
    bar.append(piece);
    words.push(`${part} ${decimal(hit[part])}`);
  }
  const both = words.length > 1;
  return make(
    "div",
    { class: "scores" },
    bar,
    make("span", {}, make("span", { class: "unseen" }, "Score "), make("b", {}, decimal(hit.score)), both ? `\u2002= ${words.join(" + ")}` : `\u2002${words[0].split(" ")[0]}`),
  );
}

function acts(document) {
  const name = titleOf(document);
  const act = (kind, label, image, text) =>
    make("button", { type: "button", class: text ? "quiet one" : "quiet square", "data-act": kind, "aria-label": `${label}: ${name}`, title: text ? null : label }, icon(image), text);
  return make("div", { class: "acts" }, act("teach", "This is the one", "check", "This is the one"), act("edit", "Edit", "pencil"), act("remove", "Delete", "bin"));
}

/** @param {(kind: "open" | "teach" | "edit" | "remove", hit: Hit, passage?: Passage) => void} act what a press on a row's button does */
export function connectResults(act) {
  const actOn = (event, kind) => {
    const hit = hitOf(event.target.closest(".result")?.dataset.id);
    if (kind && hit) act(kind, hit, hit.passages[event.target.closest("[data-passage]")?.dataset.passage ?? 0]);
    return Boolean(kind && hit);
  };
  list.addEventListener("click", (event) => actOn(event, event.target.closest("[data-act]")?.dataset.act));
  list.addEventListener("focusin", (event) => {
    const hit = hitOf(event.target.closest(".result")?.dataset.id);
    if (hit) emit("focused", { id: hit.document.id, title: titleOf(hit.document) });
  });
  return actOn;
}

/** Move the focus to the next or previous title; past the first one, back to the search box. */
export function walk(step) {
  const titles = [...list.querySelectorAll(".title")];
  const current = titles.findIndex((title) => title.closest(".result").contains(document.activeElement));
  const next = current + step;
  if (next < 0) byId("query").focus();
  else titles[Math.min(next, titles.length - 1)]?.focus();
}

function placesById() {
  return new Map([...list.children].map((element) => [element.dataset.id, element.getBoundingClientRect().top]));
}

function slide(element, before) {
  const now = element.getBoundingClientRect().top;
  if (before === undefined || before === now) return;
  element.animate([{ transform: `translateY(${before - now}px)`, zIndex: 1 }, { transform: "none", zIndex: 1 }], { duration: 520, easing: "cubic-bezier(.2, .8, .2, 1)" });
}

function focusInside() {
  const active = document.activeElement;
  return list.contains(active) ? { id: active.closest(".result").dataset.id, act: active.dataset.act } : null;
}

/** The same button of the same document; if it is gone, the first row or the search box. */
function restoreFocus(focus) {
  if (!focus) return;
  const same = [...list.children].find((element) => element.dataset.id === focus.id);
  const target = same?.querySelector(`[data-act="${focus.act}"]`) ?? list.querySelector(".title") ?? byId("query");
  target.focus({ preventScroll: true });
}
