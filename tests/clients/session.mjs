// A session with the server, led by a TypeScript client: `@modelcontextprotocol/sdk` 1.x or `@modelcontextprotocol/client` 2.x.
//
//     session.mjs 1|2 FOLDER stdio|http initialize|discover COMMAND... | URL
//
// FOLDER is where npm installed the client. The token for HTTP comes from ACK_MEM_TOKEN.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

import { ANSWER, QUESTION, SAMPLES, named, served } from "./samples.mjs";

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

function transportOf({ StdioClientTransport, StreamableHTTPClientTransport }, token = process.env.ACK_MEM_TOKEN) {
  if (transport === "stdio") {
    return new StdioClientTransport({ command: target[0], args: target.slice(1) });
  }
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

/** Over HTTP nobody is let in without the token. */
async function guarded({ Client, options, ...rest }) {
  const token = process.env.ACK_MEM_TOKEN;
  for (const wrong of [null, "wrong", `${token}0`, token.slice(0, -1)]) {
    const stranger = new Client({ name: "ack-memory-checks", version: "0" }, options);
    const refused = (error) => [error.code, error.data?.status].includes(401) || /401|Unauthorized/.test(error.message);
    const outcome = await stranger.connect(transportOf(rest, wrong)).then(() => "let in", (error) => refused(error) || error);
    assert.equal(outcome, true, `a client with the token ${wrong}`);
    await stranger.close();
  }
}

/** A memory says what the sample of its id says, and may be seen by who asked. */
function genuine(memory, may = served) {
  const sample = SAMPLES.get(memory.id);
  assert.ok(sample, `there is no sample ${memory.id}`);
  assert.equal(memory.title, sample.title, memory.id);
  assert.equal(memory.status, sample.status, `${memory.id}: status`);
  assert.ok(may(memory.id), `${memory.id} is ${memory.status}, and is shown`);
}

/** The text of an answer names every memory and scope that its structure holds. */
function sameInWords(tool, text, structure) {
  const { results = [], scopes = [], recent_memories = [], cross_project_learnings = [] } = structure;
  const names = [...results, ...recent_memories, ...cross_project_learnings].map((memory) => memory.id);
  names.push(...scopes.map((scope) => scope.name));
  if (tool === "get_memory") names.push(structure.id);
  names.forEach((name) => assert.ok(text.includes(name), `${tool}: the text lacks ${name}: ${text}`));
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
    sameInWords(name, result.content[0].text, result.structuredContent);
    return result.structuredContent;
  };
  const found = await call("query_memories", { query: QUESTION, limit: 3 });
  assert.ok(found.results.length <= 3, "the limit is kept");
  assert.ok(found.results.some((memory) => memory.id === ANSWER), `it is found: ${JSON.stringify(found)}`);
  found.results.forEach((memory) => genuine(memory));
  for (const status of ["staging", "all"]) {
    const more = await call("query_memories", { status, limit: 50 });
    assert.ok(more.results.some((memory) => memory.status === "staging"), `${status}: something waits`);
    const asked = (id) => SAMPLES.get(id).status === "staging" || (status === "all" && served(id));
    more.results.forEach((memory) => genuine(memory, asked));
  }
  // The most and the least relevant, so that no memory is answered whatever is asked.
  for (const { id } of [found.results.at(-1), found.results[0]]) {
    const memory = await call("get_memory", { id, include: ["timeline", "links"] });
    assert.equal(memory.id, id, "the memory that was asked for is the one that is read");
    genuine(memory);
    assert.deepEqual(memory.facts, SAMPLES.get(id).facts, `${id}: facts`);
  }
  const first = found.results[0];
  const { scopes } = await call("list_scopes", {});
  assert.ok(scopes.some((scope) => scope.name === first.scope), "its scope is listed");
  const context = await call("get_context", { max_memories: 2 });
  assert.ok(context.recent_memories.length <= 2, "the limit is kept");
  [...context.recent_memories, ...context.cross_project_learnings].forEach((memory) => genuine(memory));
  const rejected = [...SAMPLES.values()].find((memory) => memory.status === "rejected" && memory.scope === first.scope);

  for (const [name, args, code] of [
    ["query_memories", { query: "x", limit: 5000 }, "invalid_argument"],
    ["query_memories", { qeury: "x" }, "unknown_argument"],
    ["get_memory", { id: "no-such-memory" }, "memory_not_found"],
    ["get_memory", { id: rejected.id }, "memory_not_served"],
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
    const read = JSON.parse(contents[0].text);
    if (uri === address) {
      assert.equal(read.id, first.id, "the resource is the memory of its address");
      genuine(read);
    }
  }
  const missing = client.readResource({ uri: "memory://scope/no-such-scope" });
  await refused("a resource that is not there", missing, era === "initialize" ? -32002 : -32602);
}

async function prompts(client, first) {
  const { prompts: listed } = await client.listPrompts();
  assert.deepEqual(listed.map((prompt) => prompt.name), ["recall"]);
  const filled = await client.getPrompt({ name: "recall", arguments: { query: first.title } });
  assert.ok(filled.messages[0].content.text.includes(first.id), "recall quotes the memory");
  const quoted = named(filled.messages[0].content.text);
  assert.ok(quoted.every(served), `recall quotes what nobody approved: ${quoted}`);
  await refused("a prompt without its argument", client.getPrompt({ name: "recall", arguments: {} }), -32602);
}

const { Client, options, ...rest } = library();
if (transport === "http") {
  await guarded({ Client, options, ...rest });
}
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
