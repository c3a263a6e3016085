// Where the parts of the page meet.
import { click, hooks, info } from "./api.js";
import * as changes from "./changes.js";
import { connect, lost } from "./connection.js";
import { connectEditor, openEdit } from "./editor.js";
import { byId, make } from "./dom.js";
import { on } from "./events.js";
import { connectFigures, refreshFigures } from "./figures.js";
import { connectFiles } from "./files.js";
import { connectGaps, setLogs } from "./gaps.js";
import { connectKey, askForKey } from "./key.js";
import { connectKeyboard } from "./keyboard.js";
import { connectMap, loadMap } from "./map.js";
import { connectReader, openReader } from "./reader.js";
import { connectResults } from "./results.js";
import { connectSearch, currentQuery, keepQuestions, run, settled } from "./search.js";
import { toast } from "./toast.js";

const root = document.documentElement;
let logs = { queries: false, clicks: false };
const acts = { open: ({ id }, passage) => openReader(id, passage), teach: changes.teach, edit: openEdit, remove: changes.remove };

/** A reader's key shows a reader's page. */
function act(kind, document, passage) {
  if (kind === "open" || root.dataset.access === "write") acts[kind](document, passage);
}

/** What was pressed in the results: the question was meant, and the server may keep the click. */
function pressed(kind, { document }, passage) {
  settled();
  if (kind === "open" && logs.clicks) click(currentQuery(), document.id).catch(() => {});
  act(kind, document, passage);
}

/** One of several indexes says which, and leads back to the others. */
function showName(name) {
  if (name === null) return;
  byId("name").textContent = name;
  byId("tagline").replaceChildren(make("a", { href: "../" }, "all indexes"));
  document.title = `${name} · incdsi`;
}

async function load() {
  try {
    const known = await info();
    root.dataset.access = known.access;
    logs = known.logs;
    setLogs(logs);
    keepQuestions(logs.queries);
    showName(known.name);
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
connectKeyboard(connectResults(pressed));
connectReader(act);
connectEditor();
connectFiles();
connectGaps();
connectMap();
on("back", load);
load().then(connectFigures);
