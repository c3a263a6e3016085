// Where the parts of the page meet.
import { hooks, info } from "./api.js";
import * as changes from "./changes.js";
import { connect, lost } from "./connection.js";
import { connectEditor, openEdit } from "./editor.js";
import { on } from "./events.js";
import { connectFigures, refreshFigures } from "./figures.js";
import { connectKey, askForKey } from "./key.js";
import { connectKeyboard } from "./keyboard.js";
import { connectMap, loadMap } from "./map.js";
import { connectReader, openReader } from "./reader.js";
import { connectResults } from "./results.js";
import { connectSearch, run } from "./search.js";
import { toast } from "./toast.js";

const root = document.documentElement;
const acts = { open: ({ id }) => openReader(id), teach: changes.teach, edit: openEdit, remove: changes.remove };

/** A reader's key shows a reader's page. */
function act(kind, document) {
  if (kind === "open" || root.dataset.access === "write") acts[kind](document);
}

async function load() {
  try {
    root.dataset.access = (await info()).access;
    await Promise.all([run(), loadMap(), refreshFigures()]);
    root.dataset.ready = "true";
  } catch (error) {
    if (error.status === 401) toast("Without a key there is nothing to see. Reload to be asked again.");
  }
}

hooks.gone = lost;
hooks.key = askForKey;
connect();
connectKey();
connectSearch();
connectKeyboard(connectResults((kind, hit) => act(kind, hit.document)));
connectReader(act);
connectEditor();
connectMap();
on("back", load);
load().then(connectFigures);
