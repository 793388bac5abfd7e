// Codex's app server, asked over its standard input and output.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Starts it: `ask(method, params)` answers with the result, `end()` ends it. */
export async function appServer(program) {
  const codex = spawn(program, ["app-server"], { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map();
  codex.on("exit", (code) => {
    if (waiting.size > 0) {
      console.error(`codex ended with ${code}`);
      process.exit(1);
    }
  });
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
  return { ask, end: () => codex.kill() };
}
