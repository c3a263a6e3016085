// Short messages at the bottom; one with Undo waits longer, and does not leave while it is looked at.
import { byId, make } from "./dom.js";

export const UNDO_SECONDS = 10;
let undoing = null;

/** @param {string} text @param {{undo?: () => Promise<void>}} [options] */
export function toast(text, { undo } = {}) {
  const box = make("div", { class: "toast" }, make("p", {}, text));
  const clock = leaveAfter(box, undo ? UNDO_SECONDS : 5);
  if (undo) {
    const act = once(async () => {
      clock.stop();
      box.remove();
      await undo();
    });
    box.append(make("button", { type: "button", onclick: act, "aria-keyshortcuts": "u" }, "Undo"));
    undoing = { box, act };
  }
  byId("toasts").append(box);
}

/** Do what the newest Undo on screen would do. */
export function undoLast() {
  if (undoing?.box.isConnected) undoing.act();
}

function once(action) {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}

function leaveAfter(box, seconds) {
  let timer = 0;
  const stop = () => clearTimeout(timer);
  const start = () => {
    stop();
    timer = setTimeout(() => box.remove(), 1000 * seconds);
  };
  for (const [away, near] of [["pointerleave", "pointerenter"], ["focusout", "focusin"]]) {
    box.addEventListener(near, stop);
    box.addEventListener(away, start);
  }
  start();
  return { stop };
}
