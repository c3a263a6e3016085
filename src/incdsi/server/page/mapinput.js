// Pointer, wheel, touch and keys on the map.
import { byId } from "./dom.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEP = 1.5; // one press of plus or minus
const STILL = 5; // pixels a finger may move and still mean a press

/**
 * @param {HTMLCanvasElement} canvas
 * @param {import("./mapview.js").MapView} view
 * @param {{points: () => object[], selected: () => object | null, point: (one: object | null) => void,
 *   choose: (one: object | null) => void, open: (one: object) => void, moved: () => void}} act
 */
export function connectMapInput(canvas, view, act) {
  connectPointers(canvas, view, act);
  connectKeys(canvas, view, act);
  const zoom = (factor, x, y) => {
    view.zoom(factor, x, y);
    act.point(null);
    act.moved();
  };
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls until the map is chosen
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), event.offsetX, event.offsetY);
    },
    { passive: false },
  );
  byId("zoom-in").addEventListener("click", () => zoom(STEP));
  byId("zoom-out").addEventListener("click", () => zoom(1 / STEP));
  byId("zoom-fit").addEventListener("click", () => zoom(0));
}

function connectPointers(canvas, view, act) {
  const down = new Map(); // pointer id -> last place
  let travelled = 0;

  canvas.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (down.size === 1) travelled = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const here = [event.offsetX, event.offsetY];
    const last = down.get(event.pointerId);
    if (!last) return act.point(view.pick(act.points(), ...here));
    travelled += Math.hypot(here[0] - last[0], here[1] - last[1]);
    if (down.size === 2) pinch(view, down, event.pointerId, here);
    else if (travelled > STILL) view.pan(here[0] - last[0], here[1] - last[1]);
    canvas.classList.toggle("dragging", travelled > STILL);
    down.set(event.pointerId, here);
    act.moved();
  });
  const end = (event) => {
    canvas.classList.remove("dragging");
    if (!down.delete(event.pointerId) || event.type !== "pointerup" || travelled > STILL) return;
    const picked = view.pick(act.points(), event.offsetX, event.offsetY);
    act.point(picked);
    act.choose(picked);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => act.point(null));
  canvas.addEventListener("dblclick", (event) => {
    const picked = view.pick(act.points(), event.offsetX, event.offsetY);
    if (picked) act.open(picked);
  });
}

function pinch(view, down, moving, here) {
  const other = [...down].find(([id]) => id !== moving)[1];
  const before = Math.hypot(down.get(moving)[0] - other[0], down.get(moving)[1] - other[1]);
  const after = Math.hypot(here[0] - other[0], here[1] - other[1]);
  if (before > 0) view.zoom(after / before, (here[0] + other[0]) / 2, (here[1] + other[1]) / 2);
}

function connectKeys(canvas, view, act) {
  const go = ([dx, dy]) => {
    const from = act.selected();
    const next = from ? view.beside(act.points(), from, dx, dy) : view.pick(act.points(), view.width / 2, view.height / 2, Infinity);
    if (!next) return;
    view.reveal(next);
    act.choose(next);
    act.point(next);
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (ARROWS[event.key]) go(ARROWS[event.key]);
    else if (event.key === "Enter" && act.selected()) act.open(act.selected());
    else if (event.key === "+" || event.key === "=") view.zoom(STEP);
    else if (event.key === "-") view.zoom(1 / STEP);
    else if (event.key === "0") view.fit();
    else if (event.key === "Escape") act.choose(null);
    else return;
    event.preventDefault();
    act.moved();
  });
  canvas.addEventListener("blur", () => act.point(null));
}
