// Codex's app server, asked without login what its MCP servers offer, and to read a resource and call a tool of each.
//
//     codex.mjs PROGRAM SERVER...

import assert from "node:assert/strict";

import { appServer } from "./codex-app.mjs";

const TOOLS = ["get_context", "get_memory", "list_scopes", "query_memories"];

const [program, ...servers] = process.argv.slice(2);
const { ask, end } = await appServer(program);
const { data } = await ask("mcpServerStatus/list", {});
const { thread } = await ask("thread/start", {});
for (const server of servers) {
  const status = data.find((status) => status.name === server);
  assert.ok(status, `${server} is not listed`);
  assert.equal(status.serverInfo?.name, "ack-memory", JSON.stringify(status));
  assert.deepEqual(Object.keys(status.tools).sort(), TOOLS, server);
  assert.ok(status.resources.some((resource) => resource.uri === "memory://scopes"), server);
  const read = await ask("mcpServer/resource/read", { server, uri: "memory://scopes", threadId: thread.id });
  assert.ok(JSON.parse(read.contents[0].text).scopes.length > 0, server);
  const args = { query: "connection pool", limit: 2 };
  const called = await ask("mcpServer/tool/call", { server, tool: "query_memories", arguments: args, threadId: thread.id });
  assert.ok(!called.isError && called.structuredContent.results.length > 0, JSON.stringify(called));
  console.log(`${server}: connected, read, called`);
}
end();
