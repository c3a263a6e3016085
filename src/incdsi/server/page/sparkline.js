// A line of quality over time, drawn by hand.
import { vector } from "./dom.js";

const WIDTH = 360;
const HEIGHT = 52;

/**
 * @param {number[]} values in percent
 * @param {string} label what a screen reader says
 */
export function sparkline(values, label) {
  const svg = vector("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  const points = places(values.length > 1 ? values : [values[0], values[0]]);
  const line = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  const [lastX, lastY] = points.at(-1);
  svg.append(
    vector("polygon", { class: "area", points: `0,${HEIGHT} ${line} ${lastX.toFixed(1)},${HEIGHT}` }),
    vector("polyline", { class: "path", points: line }),
    vector("path", { class: "last", d: `M${lastX.toFixed(1)},${lastY.toFixed(1)}h.01` }), // a dot that no stretching bends
  );
  return svg;
}

/** From left to right, the least below, the greatest above; a change of less than five points stays small. */
function places(values) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = Math.max(high - low, 5);
  const bottom = (low + high - room) / 2;
  const step = (WIDTH - 6) / (values.length - 1);
  return values.map((value, index) => [index * step, HEIGHT - 8 - ((value - bottom) / room) * (HEIGHT - 16)]);
}
