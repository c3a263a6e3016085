// The map as pixels: all documents, the hits among them, one that is looked at with its neighbours, one that is new.
import { calm } from "./dom.js";

const PULSE = 3600; // milliseconds that a new document pulses

/**
 * @typedef {import("./mapview.js").Point} Point
 * @typedef {{points: Point[], hits: Point[], selected: Point | null, neighbours: Point[], newest: Point | null, since: number}} Scene
 */

/**
 * Draw everything; true while something moves and wants another frame.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./mapview.js").MapView} view
 * @param {Scene} scene
 */
export function draw(context, view, scene) {
  const colours = palette(context.canvas);
  context.clearRect(0, 0, view.width, view.height);
  drawAll(context, view, scene.points, colours);
  drawNeighbours(context, view, scene, colours);
  drawHits(context, view, scene.hits, colours);
  if (scene.selected) drawRing(context, view.toScreen(scene.selected), 8, 1, colours.ink, 2);
  return drawNewest(context, view, scene, colours);
}

function palette(canvas) {
  const style = getComputedStyle(canvas);
  const value = (name) => style.getPropertyValue(name).trim();
  return { accent: value("--accent"), ink: value("--ink"), paper: value("--sunken"), point: value("--point") };
}

/** Dots shrink with their number and grow a little as one comes closer. */
export function dotSize(number, closeness) {
  const base = number > 20000 ? 1 : number > 2000 ? 1.4 : number > 300 ? 2 : 3.2;
  return base * Math.min(closeness, 30) ** 0.35;
}

function drawAll(context, view, points, colours) {
  const size = dotSize(points.length, view.closeness);
  context.fillStyle = `rgba(${colours.point}, ${points.length > 300 ? 0.3 : 0.42})`;
  for (const point of points) {
    const [x, y] = view.toScreen(point);
    if (x < -8 || y < -8 || x > view.width + 8 || y > view.height + 8) continue;
    context.beginPath();
    context.arc(x, y, size, 0, 7);
    context.fill();
  }
}

function drawNeighbours(context, view, { selected, newest, neighbours }, colours) {
  const middle = selected ?? newest;
  if (!middle) return;
  const from = view.toScreen(middle);
  context.lineWidth = 1.2;
  for (const neighbour of neighbours) {
    const to = view.toScreen(neighbour);
    context.globalAlpha = 0.5;
    context.strokeStyle = colours.accent;
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
    context.globalAlpha = 1;
    drawDot(context, to, 3.6, colours.accent, colours.paper);
  }
  drawDot(context, from, 5, colours.accent, colours.paper);
}

function drawHits(context, view, hits, colours) {
  // The best last, so that it lies on top.
  for (let number = hits.length - 1; number >= 0; number--) {
    drawDot(context, view.toScreen(hits[number]), Math.max(6.5 - 0.5 * number, 3.4), colours.accent, colours.paper);
  }
  if (hits.length > 0) drawRing(context, view.toScreen(hits[0]), 11, 0.55, colours.accent, 1.6);
}

function drawNewest(context, view, { newest, since }, colours) {
  const age = performance.now() - since;
  if (!newest) return false;
  const centre = view.toScreen(newest);
  drawDot(context, centre, 6, colours.accent, colours.paper);
  if (calm()) drawRing(context, centre, 12, 0.9, colours.accent, 2);
  if (calm() || age > PULSE) return false;
  const turn = (age % 1200) / 1200;
  drawRing(context, centre, 6 + 28 * turn, 1 - turn, colours.accent, 2.2);
  return true;
}

function drawDot(context, [x, y], radius, fill, edge) {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fillStyle = fill;
  context.fill();
  context.lineWidth = 1.5;
  context.strokeStyle = edge;
  context.stroke();
}

function drawRing(context, [x, y], radius, alpha, stroke, width) {
  context.globalAlpha = alpha;
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.lineWidth = width;
  context.strokeStyle = stroke;
  context.stroke();
  context.globalAlpha = 1;
}
