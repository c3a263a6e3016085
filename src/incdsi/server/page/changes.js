// What one can do to a document besides editing it: teach it, delete it, bring it back.
import * as api from "./api.js";
import { make } from "./dom.js";
import { emit } from "./events.js";
import { openReader } from "./reader.js";
import { hideReceipt, showReceipt } from "./receipt.js";
import { titleOf } from "./results.js";
import { currentQuery, run } from "./search.js";
import { toast } from "./toast.js";

/** From now on the question in the box finds this document; shows what that changed. */
export async function teach(document) {
  const query = currentQuery();
  if (!query) return toast("Type the question first, then press “This is the one”.");
  const outcome = await attempt(() => api.teach(query, document.id), "Not taught");
  if (!outcome) return;
  const verb = outcome.rank_after === 1 ? "” now finds " : "” was taught to ";
  const what = ["“", query, verb, make("strong", {}, titleOf(document)), ": learned"];
  showReceipt(what, outcome, openReader, { before: outcome.rank_before, after: outcome.rank_after });
  emit("changed", { id: document.id, kind: "taught" });
  await run({ moving: true, taught: document.id });
}

/** Delete, with ten seconds to think again; its questions come back with it. */
export async function remove(document) {
  const kept = await attempt(async () => {
    const whole = await api.read(document.id);
    emit("leaving", { id: document.id });
    await api.remove(document.id);
    return whole;
  }, "Not deleted");
  if (!kept) return;
  hideReceipt();
  emit("changed", { id: kept.id, kind: "deleted" });
  offerRestore(kept, `Deleted “${titleOf(kept)}”.`);
  await run({ moving: true });
}

function offerRestore(kept, text) {
  const undo = async () => {
    const outcome = await attempt(() => api.restore(kept));
    if (!outcome) return offerRestore(kept, `“${titleOf(kept)}” could not be brought back yet.`);
    emit("changed", { id: kept.id, kind: "added" });
    toast(`“${titleOf(kept)}” is back${kept.queries.length > 0 ? ", with its questions" : ""}.`);
    await run({ moving: true });
  };
  toast(text, { undo });
}

/** The answer, or a message in its place. */
export async function attempt(action, otherwise) {
  try {
    return await action();
  } catch (error) {
    if (otherwise) toast(`${otherwise}: ${error.message}`);
    return null;
  }
}
