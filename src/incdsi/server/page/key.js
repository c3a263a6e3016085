// The key of a locked server: asked for when it answers 401, kept in this tab only.
import { keepKey } from "./api.js";
import { byId } from "./dom.js";

let asking = null;

/** Ask for a key; false when the visitor gives none. Whoever asks meanwhile waits for the same answer. */
export function askForKey(wrong) {
  asking ??= ask(wrong).finally(() => (asking = null));
  return asking;
}

function ask(wrong) {
  const dialog = byId("key-dialog");
  byId("key-problem").hidden = !wrong;
  byId("key-problem").textContent = wrong ? "That key was not accepted." : "";
  byId("key").value = "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "given"), { once: true });
  });
}

export function connectKey() {
  byId("key-dialog").querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    keepKey(byId("key").value.trim());
    byId("key-dialog").close("given");
  });
}
