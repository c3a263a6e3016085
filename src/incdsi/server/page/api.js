// The server's verbs. Every failure is a Problem with one sentence for people, or ServerGone.
import { inTab } from "./kept.js";

export class Problem extends Error {
  constructor(status, detail, error = "") {
    super(detail);
    this.status = status;
    this.error = error;
  }
}

export class ServerGone extends Error {
  constructor() {
    super("The server does not answer.");
  }
}

const KEY = "incdsi-key";
const PATIENCE = 3; // times a request is sent again when the server asks to wait

/** Set by main.js: what to do when the server is gone, and how to ask for a key. */
export const hooks = { gone: () => {}, key: async (_wrong) => false };

export const currentKey = () => inTab.get(KEY) ?? "";
export const keepKey = (key) => inTab.set(KEY, key);

/**
 * @param {string} method
 * @param {string} path relative to the page
 * @param {{body?: object, signal?: AbortSignal, quiet?: boolean, headers?: Record<string, string>, onceKey?: string}} [options]
 *   `quiet` asks for no key: for what nobody pressed; a write with a `onceKey` that was done before is not done again
 */
async function request(method, path, { body, signal, quiet = false, headers = {}, onceKey } = {}) {
  const writing = method !== "GET" && !path.startsWith("v1/search");
  const once = writing ? { "Idempotency-Key": onceKey ?? randomId() } : {};
  for (let attempt = 1; ; attempt++) {
    const key = currentKey();
    const answer = await send(method, path, body, signal, { ...headers, ...once, ...(key && { Authorization: `Bearer ${key}` }) });
    if (answer.ok) return answer.json();
    if (answer.status === 401 && !quiet && (currentKey() !== key || (await hooks.key(key !== "")))) continue;
    const wait = Number(answer.headers.get("Retry-After"));
    if (wait > 0 && wait <= 5 && attempt < PATIENCE) await pause(1000 * wait);
    else throw await problem(answer);
  }
}

async function send(method, path, body, signal, headers) {
  const type = body === undefined ? {} : { "Content-Type": "application/json" };
  try {
    const answer = await fetch(path, { method, signal, headers: { Accept: "application/json", ...type, ...headers }, body: JSON.stringify(body), cache: "no-store" });
    if (answer.status !== 502 && answer.status !== 504) return answer;
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  hooks.gone();
  throw new ServerGone();
}

async function problem(answer) {
  const told = await answer.json().catch(() => ({}));
  return new Problem(answer.status, told.detail ?? `The server answered ${answer.status}.`, told.error);
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Sixteen random bytes in hexadecimal; randomUUID is not there on a plain http address. */
export function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const documentPath = (id) => `v1/documents/${encodeURIComponent(id)}`;

export const info = () => request("GET", "v1/info");
export const figures = () => request("GET", "v1/figures", { quiet: true });
export const map = () => request("GET", "v1/map", { quiet: true });
export const near = (id, k = 6) => request("GET", `v1/map?near=${encodeURIComponent(id)}&k=${k}`, { quiet: true });
export const search = (query, mode, signal, k = 10) => request("POST", "v1/search", { body: { query, mode, k }, signal });
export const read = (id) => request("GET", documentPath(id));
export const add = async (document, onceKey) => {
  const { additions, milliseconds } = await request("POST", "v1/documents", { body: document, onceKey });
  return { ...additions[0], milliseconds };
};
/** Bring a document back as it was read, with what was asked and taught. */
export const restore = ({ id, title, text, metadata, queries, taught }) => request("PUT", documentPath(id), { body: { title, text, metadata, queries, taught } });
/** Change a document; refused with 412 when the index is not at `version` any more. */
export const change = (id, body, version) => request("PATCH", documentPath(id), { body, headers: version === undefined ? {} : { "If-Match": `"${version}"` } });
export const remove = (id) => request("DELETE", documentPath(id));
export const teach = (query, id) => request("POST", "v1/teach", { body: { query, id } });

/** Whether the server answers at all, within two seconds. */
export async function alive() {
  try {
    const answer = await fetch("readyz", { cache: "no-store", signal: AbortSignal.timeout(2000) });
    return answer.ok;
  } catch {
    return false;
  }
}
