// Without its token a server over HTTP says nothing of its memories: whatever the method, whatever the request, and wherever else than in
// its place the token stands.
//
//     guard.mjs URL
//
// The token comes from ACK_MEM_TOKEN.

import assert from "node:assert/strict";

import { QUESTION, named } from "./samples.mjs";

const url = process.argv[2];
const token = process.env.ACK_MEM_TOKEN;

const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "ack-memory-checks", version: "0" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "ack-memory-checks", version: "0" } };
const call = { name: "query_memories", arguments: { query: QUESTION } };
const REQUESTS = [
  ["initialize", hello],
  ["tools/list", { _meta: meta }],
  ["tools/call", { ...call, _meta: meta }],
  ["resources/read", { uri: "memory://scopes", _meta: meta }],
  ["ping", {}],
];
const flipped = (text) => (text.at(-1) === "0" ? "1" : "0");
/** Headers of somebody who does not know the token, or does not say it where it belongs. */
const STRANGERS = {
  "no token": {},
  "another token": { authorization: "Bearer wrong" },
  "an empty token": { authorization: "Bearer " },
  "the token but for its last character": { authorization: `Bearer ${token.slice(0, -1)}${flipped(token)}` },
  "the beginning of the token": { authorization: `Bearer ${token.slice(0, -1)}` },
  "the token and one character": { authorization: `Bearer ${token}0` },
  "the token as a password": { authorization: `Basic ${Buffer.from(`x:${token}`).toString("base64")}` },
  "the token without its scheme": { authorization: token },
  "the token in a cookie": { cookie: `token=${token}` },
};

async function ask(address, headers, method, params) {
  const body = method && JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const accept = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const modern = params?._meta ? { "mcp-protocol-version": "2026-07-28", "mcp-method": method } : {};
  if (modern["mcp-method"] && (params.name ?? params.uri)) {
    modern["mcp-name"] = params.name ?? params.uri;
  }
  const response = await fetch(address, { method: "POST", body, headers: { ...accept, ...modern, ...headers } });
  return { status: response.status, text: await response.text() };
}

// With the token all of them are answered, or the rest would say nothing.
for (const [method, params] of REQUESTS) {
  const { status, text } = await ask(url, { authorization: `Bearer ${token}` }, method, params);
  assert.equal(status, 200, `${method}: ${text}`);
}
for (const [who, headers] of Object.entries(STRANGERS)) {
  for (const [method, params] of REQUESTS) {
    const { status, text } = await ask(url, headers, method, params);
    assert.equal(status, 401, `${method} with ${who} is answered: ${status} ${text.slice(0, 300)}`);
    assert.deepEqual(named(text), [], `${method} with ${who}: memories in the refusal`);
  }
}
const { status } = await ask(`${url}?token=${token}&access_token=${token}`, {}, ...REQUESTS[2]);
assert.equal(status, 401, "the token in the address lets nobody in");
for (const method of ["GET", "DELETE", "PUT", "PATCH"]) {
  const response = await fetch(url, { method, headers: { accept: "text/event-stream" } });
  assert.ok([401, 405].includes(response.status), `${method} without a token: ${response.status}`);
}
