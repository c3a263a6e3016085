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

const KEY = `incdsi-key ${location.pathname.replace(/[^/]*$/, "")}`; // each index of a server has its own
const PATIENCE = 3; // times a request is sent again when the server asks to wait

/** Set by main.js: what to do when the server is gone, and how to ask for a key. */
export const hooks = { gone: () => {}, key: async (_wrong) => false };

const SERVER_KEY = `incdsi-key ${location.pathname.replace(/[^/]+\/[^/]*$/, "")}`; // it may open this index as well

export const currentKey = () => inTab.get(KEY) ?? inTab.get(SERVER_KEY) ?? "";
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

/** What is on a server of several indexes. */
export const indexes = async () => (await request("GET", "v1/indexes")).indexes;
export const info = () => request("GET", "v1/info");
export const figures = () => request("GET", "v1/figures", { quiet: true });
export const map = () => request("GET", "v1/map", { quiet: true });
export const near = (id, k = 6) => request("GET", `v1/map?near=${encodeURIComponent(id)}&k=${k}`, { quiet: true });
/** The best documents; `log` lets the server keep what was asked, if it keeps anything. */
export const search = (query, mode, signal, { k = 10, log = true } = {}) => request("POST", "v1/search", { body: { query, mode, k, passages: 3, texts: "none", log }, signal });
export const read = (id) => request("GET", documentPath(id));
export const add = async (document, onceKey) => {
  const { additions, milliseconds } = await request("POST", "v1/documents", { body: document, onceKey });
  return { ...additions[0], milliseconds };
};
/** Bring a document back as it was read, with what was asked and taught. */
export const restore = ({ id, title, text, metadata, queries, taught }) => request("PUT", documentPath(id), { body: { title, text, metadata, queries, taught } });
/** Change a document; refused with 412 when the index is not at `version` any more. */
export const change = (id, body, version) => request("PATCH", documentPath(id), { body, headers: version === undefined ? {} : { "If-Match": `"${version}"` } });
export const removeMany = (ids) => request("POST", "v1/documents/delete", { body: { ids } });
export const gaps = () => request("GET", "v1/gaps");
export const click = (query, id) => request("POST", "v1/clicks", { body: { query, id }, quiet: true });
export const remove = (id) => request("DELETE", documentPath(id));
export const teach = (query, id) => request("POST", "v1/teach", { body: { query, id } });

/**
 * Add a file's documents, all or none; XMLHttpRequest tells how much was sent, and gives the lines of the answer as they come.
 * @param {File} file @param {object} options columns, or `replace` @param {(step: {stage: string, done: number, of: number}) => void} told
 */
export function sendFile(file, options, told) {
  const query = new URLSearchParams({ name: file.name, progress: "true", ...options });
  const sending = new XMLHttpRequest();
  sending.open("POST", `v1/files?${query}`);
  sending.setRequestHeader("Content-Type", "application/octet-stream");
  if (currentKey()) sending.setRequestHeader("Authorization", `Bearer ${currentKey()}`);
  const lines = () => sending.responseText.split("\n").slice(0, -1).map((line) => JSON.parse(line));
  sending.upload.addEventListener("progress", ({ loaded, total }) => told({ stage: "sending", done: loaded, of: total }));
  sending.upload.addEventListener("load", () => told({ stage: "reading", done: 0, of: 0 }));
  let heard = 0;
  sending.addEventListener("progress", () => {
    const steps = sending.status === 200 ? lines() : [];
    for (const step of steps.slice(heard)) if (step.stage) told(step);
    heard = steps.length;
  });
  return new Promise((resolve, reject) => {
    sending.addEventListener("error", () => {
      hooks.gone();
      reject(new ServerGone());
    });
    sending.addEventListener("load", () => {
      const last = sending.status === 200 ? lines().at(-1) : parsed(sending.responseText);
      if (last?.documents !== undefined) resolve(last);
      else reject(new Problem(last?.status ?? sending.status, last?.detail ?? `The server answered ${sending.status}.`, last?.error));
    });
    sending.send(file);
  });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Whether the server answers at all, within two seconds. */
export async function alive() {
  try {
    const answer = await fetch("readyz", { cache: "no-store", signal: AbortSignal.timeout(2000) });
    return answer.ok;
  } catch {
    return false;
  }
}
