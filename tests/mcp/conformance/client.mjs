// Each tool of `incdsi mcp` by the protocol's TypeScript SDK, which checks answers against the tools' own schemas.
//   node client.mjs http://127.0.0.1:7800/mcp     node client.mjs incdsi mcp --index shop --write
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, env: process.env });
const client = new Client({ name: "incdsi-tests", version: "1" });
await client.connect(transport);
const call = (name, given) => client.callTool({ name, arguments: given });

const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name), ["search", "get", "add", "teach", "delete"]);
assert.equal((await call("add", { id: "tent-3", text: "A tent for two." })).structuredContent.id, "tent-3");
assert.equal((await call("teach", { query: "gift for dad", id: "stove-2" })).structuredContent.id, "stove-2");
const hits = (await call("search", { query: "gift for dad", k: 1 })).structuredContent.result;
assert.deepEqual(hits.map((hit) => hit.id), ["stove-2"]);
assert.deepEqual((await call("get", { id: "stove-2" })).structuredContent.taught, ["gift for dad"]);
assert.ok(!(await call("delete", { id: "tent-3" })).isError);
const refused = await call("get", { id: "tent-3" });
assert.ok(refused.isError);
assert.match(refused.content[0].text, /no document 'tent-3'/);
await client.close();
