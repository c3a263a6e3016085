// The indexes on this server, each a link to its page.
import { hooks, indexes } from "./api.js";
import { byId, make } from "./dom.js";
import { askForKey, connectKey } from "./key.js";
import { plural } from "./numbers.js";

function described({ name, status, documents, access, detail }) {
  if (status !== "open") return make("li", { class: "unavailable" }, make("b", {}, name), make("p", {}, detail));
  return make("li", {}, make("a", { href: `${encodeURIComponent(name)}/` }, name), make("p", {}, plural(documents, "document"), access === "read" && ", read-only"));
}

hooks.key = askForKey;
connectKey();
try {
  const found = await indexes();
  byId("said").textContent = plural(found.length, "index").replace(/indexs$/, "indexes");
  byId("indexes").replaceChildren(...found.map(described));
} catch (error) {
  byId("said").textContent = error.status === 401 ? "Without a key there is nothing to see. Reload to be asked again." : error.message;
}
document.documentElement.dataset.ready = "true";
