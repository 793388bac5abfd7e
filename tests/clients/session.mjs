// A session with the server, led by a TypeScript client: `@modelcontextprotocol/sdk` 1.x or `@modelcontextprotocol/client` 2.x.
//
//     session.mjs 1|2 FOLDER stdio|http initialize|discover COMMAND... | URL
//
// FOLDER is where npm installed the client. The token for HTTP comes from ACK_MEM_TOKEN.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const NEWEST = { initialize: "2025-11-25", discover: "2026-07-28" };
const TOOLS = ["get_context", "get_memory", "list_scopes", "query_memories"];

const [major, folder, transport, era, ...target] = process.argv.slice(2);
const installed = createRequire(join(resolve(folder), "package.json"));

/** The classes of the client, and the options that make it speak the era. */
function library() {
  if (major === "1") {
    assert.equal(era, "initialize", "the client 1.x speaks the older era alone");
    const sdk = "@modelcontextprotocol/sdk/client";
    return {
      ...installed(`${sdk}/index.js`),
      ...installed(`${sdk}/stdio.js`),
      ...installed(`${sdk}/streamableHttp.js`),
      options: {},
    };
  }
  const client = "@modelcontextprotocol/client";
  // Pinned: falling back to the other era would be an error.
  const mode = era === "initialize" ? "legacy" : { pin: NEWEST.discover };
  return { ...installed(client), ...installed(`${client}/stdio`), options: { versionNegotiation: { mode } } };
}

function transportOf({ StdioClientTransport, StreamableHTTPClientTransport }) {
  if (transport === "stdio") {
    return new StdioClientTransport({ command: target[0], args: target.slice(1) });
  }
  const token = process.env.ACK_MEM_TOKEN;
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } });
}

/** Checks that a request is answered with an error of the protocol. */
async function refused(what, answer, code) {
  const error = await answer.then(
    (value) => assert.fail(`${what}: answered with ${JSON.stringify(value)}`),
    (error) => error,
  );
  assert.equal(error.code, code, `${what}: ${error}`);
}

async function tools(client) {
  // The client learns the schemas of the answers here, and holds every answer against them from now on.
  const { tools: listed } = await client.listTools();
  assert.deepEqual(listed.map((tool) => tool.name), TOOLS);
  for (const tool of listed) {
    assert.equal(tool.outputSchema?.type, "object", tool.name);
    assert.equal(tool.annotations.readOnlyHint, true, tool.name);
  }

  const call = async (name, args) => {
    const result = await client.callTool({ name, arguments: args });
    assert.ok(!result.isError, `${name}: ${JSON.stringify(result)}`);
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent, `${name}: text and structure`);
    return result.structuredContent;
  };
  const found = await call("query_memories", { query: "prepared statements behind a connection pool", limit: 3 });
  assert.ok(found.results.length > 0 && found.results.length <= 3, "something is found, within the limit");
  const first = found.results[0];
  const memory = await call("get_memory", { id: first.id, include: ["timeline", "links"] });
  assert.ok(JSON.stringify(memory).includes(JSON.stringify(first.title)), "the memory that was found is the one that is read");
  const { scopes } = await call("list_scopes", {});
  assert.ok(scopes.some((scope) => scope.name === first.scope), "its scope is listed");
  const context = await call("get_context", { max_memories: 2 });
  assert.ok(context.recent_memories.length <= 2, "the limit is kept");

  for (const [name, args, code] of [
    ["query_memories", { query: "x", limit: 5000 }, "invalid_argument"],
    ["query_memories", { qeury: "x" }, "unknown_argument"],
    ["get_memory", { id: "no-such-memory" }, "memory_not_found"],
  ]) {
    const result = await client.callTool({ name, arguments: args });
    assert.equal(result.isError, true, JSON.stringify(result));
    assert.equal(result.structuredContent, undefined);
    assert.equal(JSON.parse(result.content[0].text).code, code);
  }
  await refused("an unknown tool", client.callTool({ name: "no_such_tool", arguments: {} }), -32602);
  return first;
}

async function resources(client, first) {
  const listed = (await client.listResources()).resources.map((resource) => resource.uri);
  assert.ok(listed.includes("memory://scopes"), `${listed}`);
  const { resourceTemplates } = await client.listResourceTemplates();
  const templates = resourceTemplates.map((template) => template.uriTemplate);
  assert.ok(templates.includes("memory://scope/{name}/memory/{id}"), `${templates}`);
  const address = `memory://scope/${first.scope}/memory/${first.id}`;
  for (const uri of ["memory://scopes", `memory://scope/${first.scope}`, address]) {
    const { contents } = await client.readResource({ uri });
    assert.equal(contents[0].uri, uri);
    JSON.parse(contents[0].text);
  }
  const missing = client.readResource({ uri: "memory://scope/no-such-scope" });
  await refused("a resource that is not there", missing, era === "initialize" ? -32002 : -32602);
}

async function prompts(client, first) {
  const { prompts: listed } = await client.listPrompts();
  assert.deepEqual(listed.map((prompt) => prompt.name), ["curate_pending", "recall"]);
  const filled = await client.getPrompt({ name: "recall", arguments: { query: first.title } });
  assert.ok(filled.messages[0].content.text.includes(first.id), "recall quotes the memory");
  await client.getPrompt({ name: "curate_pending" });
  await refused("a prompt without its argument", client.getPrompt({ name: "recall", arguments: {} }), -32602);
  const { completion } = await client.complete({
    ref: { type: "ref/resource", uri: "memory://scope/{name}" },
    argument: { name: "name", value: first.scope.slice(0, 3) },
  });
  assert.ok(completion.values.includes(first.scope), `${completion.values}`);
}

const { Client, options, ...rest } = library();
const client = new Client({ name: "ack-memory-checks", version: "0" }, options);
await client.connect(transportOf(rest));
if (major === "2") {
  assert.equal(client.getNegotiatedProtocolVersion(), NEWEST[era]);
}
assert.equal(client.getServerVersion().name, "ack-memory");
assert.match(client.getInstructions(), /query_memories/);
if (era === "initialize") {
  await client.ping();
}
const first = await tools(client);
await resources(client, first);
await prompts(client, first);
await client.close();
