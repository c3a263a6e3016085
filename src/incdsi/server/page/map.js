// The map: what is on it, what is lit, and the list of neighbours that says the same in words.
import * as api from "./api.js";
import { byId, make } from "./dom.js";
import { on } from "./events.js";
import { draw } from "./mapdrawing.js";
import { connectMapInput } from "./mapinput.js";
import { MapView } from "./mapview.js";
import { plural } from "./numbers.js";
import { openReader } from "./reader.js";
import { setExamples } from "./search.js";

/** @typedef {import("./mapview.js").Point} Point */

const REST = 120; // milliseconds of looking at a document before its neighbours are asked for
const canvas = byId("map");
const context = canvas.getContext("2d");
const view = new MapView();
const points = new Map(); // by id

const scene = { points: [], hits: [], selected: null, neighbours: [], newest: null, since: 0 };
let axes = null;
let hitIds = [];
let framed = false;
let lighting = 0;

/** Read the whole map anew. */
export async function loadMap() {
  const answer = await api.map();
  axes = answer.axes;
  points.clear();
  for (const point of answer.points) points.set(point.id, point);
  rebuild();
  view.cover(scene.points);
  caption();
  setExamples(answer.points.map((point) => point.title));
  redraw();
}

/** What the scene shows follows from the points, by id. */
function rebuild() {
  const here = (one) => (one ? (points.get(one.id) ?? null) : null);
  scene.points = [...points.values()];
  scene.hits = hitIds.map((id) => points.get(id)).filter(Boolean);
  scene.selected = here(scene.selected);
  scene.newest = here(scene.newest);
  scene.neighbours = scene.neighbours.map(here).filter(Boolean);
  canvas.dataset.points = String(scene.points.length);
  canvas.dataset.hits = String(scene.hits.length);
  canvas.dataset.lit = String(scene.neighbours.length);
  canvas.dataset.newest = scene.newest?.id ?? "";
  canvas.dataset.selected = scene.selected?.id ?? "";
}

export function redraw() {
  if (framed) return;
  framed = true;
  requestAnimationFrame(() => {
    framed = false;
    if (draw(context, view, scene)) redraw();
  });
}

function resize() {
  const { width, height } = canvas.getBoundingClientRect();
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  view.resize(width, height);
  redraw();
}

/** Light a document's neighbours, and name them below. */
async function light(id, { fresh = false } = {}) {
  const mine = ++lighting;
  const answer = await api.near(id).catch(() => null);
  if (!answer || mine !== lighting) return;
  if (answer.axes !== axes) await loadMap();
  for (const point of [answer.point, ...answer.neighbours]) points.set(point.id, point);
  scene.neighbours = answer.neighbours;
  scene.selected = fresh ? null : answer.point;
  scene.newest = fresh ? answer.point : scene.newest;
  if (fresh) scene.since = performance.now();
  rebuild();
  view.cover(scene.points);
  view.reveal(answer.point);
  listNeighbours(answer);
  if (byId("map-label").hidden) caption();
  redraw();
}

function listNeighbours({ point, neighbours }) {
  byId("neighbours").hidden = neighbours.length === 0;
  byId("neighbours-heading").textContent = `Near “${point.title || point.id}”`;
  byId("neighbours-list").replaceChildren(
    ...neighbours.map((one) => make("li", {}, make("button", { type: "button", title: one.title || one.id, onclick: () => openReader(one.id) }, make("span", {}, one.title || one.id)))),
  );
}

function unlight() {
  lighting++;
  Object.assign(scene, { selected: null, neighbours: [] });
  byId("neighbours").hidden = true;
  rebuild();
  caption();
  redraw();
}

/** Say which document is pointed at, beside it and below the map. @param {Point | null} point */
function caption(point = null) {
  const label = byId("map-label");
  label.hidden = point === null;
  byId("map-caption").textContent = point ? point.title || point.id : `${plural(scene.points.length, "document")}. Near means alike; point at one for its title.`;
  if (!point) return;
  label.textContent = point.title || point.id;
  const [x, y] = view.toScreen(point);
  label.style.left = `${Math.min(Math.max(x - label.offsetWidth / 2, 4), view.width - label.offsetWidth - 4)}px`;
  label.style.top = `${y > 44 ? y - 38 : y + 14}px`;
}

function forget(id) {
  points.delete(id);
  const middle = scene.selected ?? scene.newest;
  if (middle?.id === id) unlight();
  else if (middle && scene.neighbours.some((one) => one.id === id)) light(middle.id);
  rebuild();
  caption();
  redraw();
}

/** Light what is looked at, once the eye rests on it. */
function lightSoon({ id }) {
  lightSoon.cancel();
  lightSoon.timer = setTimeout(() => light(id), REST);
}
lightSoon.cancel = () => clearTimeout(lightSoon.timer);

export function connectMap() {
  connectMapInput(canvas, view, {
    points: () => scene.points,
    selected: () => scene.selected,
    point: caption,
    choose: (point) => {
      scene.selected = point;
      rebuild();
      if (point) light(point.id);
      else unlight();
    },
    open: (point) => openReader(point.id),
    moved: redraw,
  });
  new ResizeObserver(resize).observe(canvas);
  document.addEventListener("themechange", redraw);
  on("focused", lightSoon);
  on("leaving", lightSoon.cancel);
  on("changed", ({ id, kind }) => (kind === "deleted" ? forget(id) : light(id, { fresh: kind === "added" })));
  on("loaded", loadMap);
  on("searched", ({ hits }) => {
    hitIds = hits.map((hit) => hit.document.id);
    rebuild();
    redraw();
  });
}
