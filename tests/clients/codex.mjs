// Codex's app server, asked without login what its MCP servers offer, and to read a resource and call a tool of each.
//
//     codex.mjs PROGRAM SERVER...

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const TOOLS = ["get_context", "get_memory", "list_scopes", "query_memories"];

const [program, ...servers] = process.argv.slice(2);
const codex = spawn(program, ["app-server"], { stdio: ["pipe", "pipe", "inherit"] });
codex.on("exit", (code) => {
  if (waiting.size > 0) {
    console.error(`codex ended with ${code}`);
    process.exit(1);
  }
});

const waiting = new Map();
createInterface({ input: codex.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  if (!message.method && waiting.has(message.id)) {
    waiting.get(message.id)(message);
    waiting.delete(message.id);
  }
});

let id = 0;
async function ask(method, params) {
  id += 1;
  const answer = new Promise((resolve) => waiting.set(id, resolve));
  codex.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
  const { result, error } = await answer;
  assert.ok(result, `${method}: ${JSON.stringify(error)}`);
  return result;
}

await ask("initialize", { clientInfo: { name: "ack-memory-checks", version: "0" } });
codex.stdin.write(`${JSON.stringify({ method: "initialized" })}\n`);
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
codex.kill();
