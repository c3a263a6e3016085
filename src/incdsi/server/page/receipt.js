// What the last change did: its milliseconds by step, the rank before and after, and whom it is close to.
import { byId, calm, icon, make } from "./dom.js";
import { milliseconds } from "./numbers.js";

const STEPS = ["generate", "encode", "constrain", "solve", "commit", "append"];
const TOLD = 0.01; // the share of the time from which a step is told

/**
 * @param {(Node | string)[]} what a sentence without its end: the milliseconds are put there
 * @param {{seconds: Record<string, number>, milliseconds: number, conflicts: string[]}} outcome
 * @param {(id: string) => void} open shows a document
 * @param {{before: number | null, after: number | null} | null} [ranks]
 */
export function showReceipt(what, outcome, open, ranks = null) {
  const steps = STEPS.map((name) => ({ name, ms: 1000 * (outcome.seconds[name] ?? 0) })).filter(({ ms }) => ms >= TOLD * outcome.milliseconds);
  const close = make("button", { type: "button", class: "quiet square small close", "aria-label": "Close this message", onclick: hideReceipt }, icon("cross"));
  const parts = [
    make("div", { class: "what" }, ranks && rankChange(ranks), make("p", {}, ...what, ` in ${milliseconds(outcome.milliseconds)} ms.`)),
    bar(steps),
    make("dl", { class: "step-names" }, ...steps.map(({ name, ms }) => make("div", {}, make("dt", {}, name), make("dd", {}, `${milliseconds(ms)} ms`)))),
    ...(outcome.conflicts.length > 0 ? [conflicts(outcome.conflicts, open)] : []),
    close,
  ];
  byId("receipt").replaceChildren(...parts);
  byId("receipt").hidden = false;
  byId("receipt").scrollIntoView({ block: "nearest", behavior: calm() ? "auto" : "smooth" });
}

export function hideReceipt() {
  byId("receipt").hidden = true;
  byId("receipt").replaceChildren();
}

/** "7 → 1", said as words to those who listen. */
function rankChange({ before, after }) {
  const place = (rank) => (rank === null ? "100+" : String(rank));
  const seen = [["was", place(before)], ["to", "→"], ["is", place(after)]].map(([name, text]) => make("span", { class: name, "aria-hidden": "true" }, text));
  return make("p", { class: "rank-change" }, make("span", { class: "unseen" }, `Rank ${place(before)} before, ${place(after)} now.`), ...seen);
}

function bar(steps) {
  const parts = steps.map(({ ms }) => {
    const part = make("i");
    part.style.flexGrow = String(ms);
    return part;
  });
  return make("div", { class: "steps", "aria-hidden": "true" }, ...parts);
}

function conflicts(ids, open) {
  const links = ids.slice(0, 5).flatMap((id) => [" ", make("button", { type: "button", class: "link", onclick: () => open(id) }, id), ","]);
  links.pop();
  const more = ids.length > 5 ? ` and ${ids.length - 5} more` : "";
  return make("p", { class: "conflicts" }, "In conflict with", ...links, more, ": alike, they compete for the same questions.");
}
