// The server went away: say so, keep what was typed, and try again, less and less often, until it is back.
import { alive } from "./api.js";
import { byId, make } from "./dom.js";
import { emit } from "./events.js";

const FIRST = 0.5; // seconds
const LONGEST = 15;

let trying = false;
let wake = () => {};

export function connect() {
  byId("retry").addEventListener("click", () => wake());
  addEventListener("online", () => wake());
}

/** Called by whoever got no answer; one loop at a time. */
export async function lost() {
  if (trying) return;
  trying = true;
  for (let wait = FIRST; !(await alive()); wait = Math.min(2 * wait, LONGEST)) await countDown(wait);
  trying = false;
  showBack();
  emit("back");
}

async function countDown(seconds) {
  const left = make("span", { "aria-hidden": "true" });
  if (byId("banner").hidden || byId("banner").classList.contains("back")) {
    byId("banner-text").replaceChildren("The server does not answer. What you typed is kept, and the page tries again by itself. ", left);
    byId("banner").classList.remove("back");
    byId("banner").hidden = false;
  } else {
    byId("banner-text").lastChild.replaceWith(left); // not announced again
  }
  const end = Date.now() + 1000 * seconds;
  const tick = () => (left.textContent = `Next try in ${Math.max(0, Math.ceil((end - Date.now()) / 1000))} s.`);
  tick();
  const clock = setInterval(tick, 250);
  await new Promise((resolve) => {
    wake = resolve;
    setTimeout(resolve, 1000 * seconds);
  });
  clearInterval(clock);
}

function showBack() {
  const banner = byId("banner");
  if (banner.hidden) return;
  byId("banner-text").textContent = "The server is back.";
  banner.classList.add("back");
  setTimeout(() => (banner.hidden ||= !trying), 3000);
}
