// What a server wrote to its standard output in one session is the protocol and nothing else, from the first byte on. Clients pass over
// what they cannot read, some without a word.
//
//     lines.mjs FILE

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const written = readFileSync(process.argv[2], "utf8");
assert.ok(written.endsWith("\n"), `the last line is not whole: ${written.slice(-200)}`);
const answered = new Set();
for (const line of written.slice(0, -1).split("\n")) {
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    assert.fail(`a line that is no message: ${line.slice(0, 300)}`);
  }
  assert.equal(message?.jsonrpc, "2.0", `a line that is no message: ${line.slice(0, 300)}`);
  if (message.method === undefined) {
    assert.ok("result" in message !== "error" in message, `an answer is a result or an error: ${line.slice(0, 300)}`);
    assert.ok(!answered.has(message.id), `answered twice: ${message.id}`);
    answered.add(message.id);
  }
}
assert.ok(answered.size > 0, "nothing was answered");
