// The API to read: openapi.json of this server as cards, each with its fields and a curl line.
import { byId, make } from "./dom.js";

const JSON_TYPE = "application/json";
const FIRST = ["search", "documents", "about"];
const COPIED_FOR = 1500;
let api = null;

/** A schema without references, one level deep. */
function resolved(schema = {}) {
  return schema.$ref ? resolved(api.components.schemas[schema.$ref.split("/").pop()]) : schema;
}

const named = (schema) => schema.$ref?.split("/").pop();
const isNull = (schema) => schema.type === "null";

/** What a value may be, in a few words. */
function typeOf(schema) {
  if (schema.$ref && resolved(schema).properties) return named(schema);
  const found = resolved(schema);
  if (found.const !== undefined) return JSON.stringify(found.const);
  if (found.enum) return found.enum.map((one) => JSON.stringify(one)).join(" | ");
  const either = found.anyOf ?? found.oneOf;
  if (either) return [...new Set(either.filter((one) => !isNull(one)).map(typeOf))].join(" | ");
  if (found.type === "array") return `list of ${typeOf(found.items ?? {})}`;
  if (found.type === "object" && found.additionalProperties?.type) return `object of ${typeOf(found.additionalProperties)}`;
  return found.type ?? "anything";
}

/** Limits and default, in a few words. */
function limitsOf(schema) {
  const parts = (schema.anyOf ?? [schema]).filter((one) => !isNull(one)).map(resolved);
  const said = parts.flatMap((one) => [
    one.minimum !== undefined && `at least ${one.minimum}`,
    one.maximum !== undefined && `at most ${one.maximum}`,
    one.minLength > 1 && `at least ${one.minLength} characters`,
    one.maxLength !== undefined && `at most ${one.maxLength.toLocaleString("en")} characters`,
  ]);
  if (schema.default !== undefined && schema.default !== null) said.push(`default ${JSON.stringify(schema.default)}`);
  return said.filter(Boolean).join(", ");
}

function table(rows) {
  const lines = rows.map(({ name, required, schema, description, place }) => make("tr", {},
    make("td", {}, make("code", {}, name), required && make("span", { class: "required" }, "required")),
    make("td", {}, make("code", { class: "type" }, typeOf(schema)), place && ` in the ${place}`),
    make("td", {}, [(description ?? resolved(schema).description)?.replace(/\.$/, ""), limitsOf(schema)].filter(Boolean).join("; ")),
  ));
  const head = make("tr", {}, ...["field", "type", "what"].map((name) => make("th", { scope: "col" }, name)));
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines)));
}

function fieldsOf(schema, sent) {
  const found = resolved(schema);
  return Object.entries(found.properties ?? {}).map(([name, own]) => ({
    name, schema: own, description: own.description, required: sent && found.required?.includes(name),
  }));
}

/** The models that a schema may be, or has inside. */
function parts(schema) {
  if (schema.$ref) return resolved(schema).properties ? [schema] : parts(resolved(schema));
  return [...(schema.anyOf ?? schema.oneOf ?? []), schema.items, schema.additionalProperties].filter((one) => one && one !== true).flatMap(parts);
}

/** The models a body or an answer may be, each as a table, and what they have inside. */
function models(schema, sent) {
  const known = new Map();
  const collect = (one) => {
    if (known.has(named(one))) return;
    known.set(named(one), one);
    Object.values(resolved(one).properties ?? {}).flatMap(parts).forEach(collect);
  };
  parts(schema).forEach(collect);
  return [...known.values()].flatMap((one) => [
    known.size > 1 && make("h3", {}, named(one)),
    resolved(one).description && make("p", { class: "type" }, resolved(one).description),
    table(fieldsOf(one, sent)),
  ].filter(Boolean));
}

/** A line for the shell that calls the endpoint with its example. */
function curl(path, method, operation) {
  const content = operation.requestBody?.content?.[JSON_TYPE];
  const query = (operation.parameters ?? []).filter((one) => one.in === "query" && one.required);
  const filled = path.replace(/\{[^}]+\}/g, "boots-18");
  const lines = [`curl -s ${method === "get" ? "" : `-X ${method.toUpperCase()} `}${query.length ? "--get " : ""}${new URL(filled.slice(1), document.baseURI).href}`];
  for (const one of query) lines.push(`--data-urlencode ${quoted(`${one.name}=${exampleOf(one)}`)}`);
  if (content) lines.push(`-H 'Content-Type: ${JSON_TYPE}'`, `-d ${quoted(JSON.stringify(content.example))}`);
  return lines.join(" \\\n  ");
}

const exampleOf = ({ example, schema }) => example ?? resolved(schema).examples?.[0] ?? resolved(schema).default ?? "";
const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

function copyable(text) {
  const button = make("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), COPIED_FOR);
  } }, "Copy");
  return make("div", { class: "curl" }, make("pre", { tabindex: 0 }, text), navigator.clipboard && button);
}

function answers(operation) {
  const good = Object.entries(operation.responses).filter(([status]) => status < "300");
  return good.flatMap(([status, { content = {} }]) => Object.entries(content).map(([type, { schema = {} }]) =>
    make("details", {}, make("summary", {}, `${status}: ${typeOf(schema) === "anything" ? type : typeOf(schema)}`), ...models(schema, false))));
}

const anchor = (method, path) => `${method}${path.replace(/[^a-z0-9]+/gi, "-")}`.replace(/-+$/, "");
const writes = (operation) => (operation.parameters ?? []).some((one) => one.name === "Idempotency-Key");

function methodOf(method, operation) {
  return make("span", { class: writes(operation) ? "method write" : "method" }, method.toUpperCase());
}

function card(path, method, operation) {
  const given = (operation.parameters ?? []).map((one) => ({ ...one, place: one.in }));
  const body = operation.requestBody?.content ?? {};
  const errors = Object.keys(operation.responses).filter((status) => status >= "400");
  return make("article", { id: anchor(method, path) },
    make("h2", {}, methodOf(method, operation), path),
    make("p", {}, operation.description ?? operation.summary),
    given.length > 0 && make("h3", {}, "Parameters"), given.length > 0 && table(given),
    body[JSON_TYPE] && make("h3", {}, "Body"), ...(body[JSON_TYPE] ? models(body[JSON_TYPE].schema, true) : []),
    make("h3", {}, "Try it"), copyable(curl(path, method, operation)),
    make("h3", {}, "Answers"), ...answers(operation),
    make("p", { class: "type" }, `Errors, as application/problem+json: ${errors.join(", ") || "none of its own"}.`),
  );
}

function show(found) {
  api = found;
  byId("version").textContent = api.info.version;
  const all = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation, tag: operation.tags?.[0] ?? "server" })));
  const tags = [...new Set(all.map((one) => one.tag))].sort((one, other) => FIRST.indexOf(one) - FIRST.indexOf(other));
  for (const tag of tags) {
    const own = all.filter((one) => one.tag === tag);
    byId("contents").append(make("h2", {}, tag), ...own.map(({ path, method, operation }) =>
      make("a", { href: `docs#${anchor(method, path)}` }, methodOf(method, operation), make("span", {}, path))));
    byId("endpoints").append(...own.map(({ path, method, operation }) => card(path, method, operation)));
  }
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

try {
  const answer = await fetch("openapi.json");
  if (!answer.ok) throw new Error(String(answer.status));
  show(await answer.json());
} catch (error) {
  byId("problem").textContent = `openapi.json could not be read (${error.message}); is the server running?`;
  byId("problem").hidden = false;
}
