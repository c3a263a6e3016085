// Live figures, read every few seconds while someone looks.
import { figures } from "./api.js";
import { byId, make } from "./dom.js";
import { on } from "./events.js";
import { count, milliseconds, plural } from "./numbers.js";
import { setDocuments } from "./search.js";
import { sparkline } from "./sparkline.js";

const EVERY = 3000;
let drawn = ""; // what the quality part shows; drawn again only when it is something else

export async function refreshFigures() {
  let now;
  try {
    now = await figures();
  } catch {
    return; // whoever asked for something says what is wrong
  }
  byId("figure-documents").textContent = count(now.documents);
  byId("figure-additions").textContent = count(now.additions);
  showTime("figure-add", now.p50_add_ms);
  showTime("figure-search", now.p50_search_ms);
  showQuality(now.quality);
  byId("advice").hidden = now.advice === null;
  byId("advice").textContent = now.advice ?? "";
  setDocuments(now.documents);
}

function showTime(id, value) {
  byId(id).replaceChildren(...(value === null ? ["–"] : [milliseconds(value), make("small", {}, "ms")]));
}

function showQuality(history) {
  const measured = history.filter((point) => point.quality.fused);
  const state = JSON.stringify([measured.length, measured.at(-1)]);
  if (state === drawn) return;
  drawn = state;
  byId("quality").replaceChildren(...(measured.length > 0 ? quality(measured) : [nothingMeasured()]));
}

function quality(measured) {
  const values = measured.map((point) => point.quality.fused.hits_at_1);
  const last = measured.at(-1).quality;
  const line = make("div", { class: "line" }, make("span", {}, "Found first, of ", plural(last.fused.queries, "held-out question")), make("b", {}, `${last.fused.hits_at_1.toFixed(1)} %`));
  const label = `From ${values[0].toFixed(1)} to ${values.at(-1).toFixed(1)} percent over ${plural(values.length, "measurement")}`;
  const beside = last.dense && make("p", {}, `Without learning and words: ${last.dense.hits_at_1.toFixed(1)} %`);
  return [line, sparkline(values, label), ...(beside ? [beside] : [])];
}

const nothingMeasured = () => make("p", {}, "Quality is measured on questions held out: give documents three or more questions each.");

export function connectFigures() {
  setInterval(() => document.visibilityState === "visible" && refreshFigures(), EVERY);
  on("changed", refreshFigures);
  on("loaded", refreshFigures);
  refreshFigures();
}
