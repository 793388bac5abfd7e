// A server with a fault, planted between it and its client: to see that the checks notice it (`run.sh --self-test`).
//
//     fault.mjs FAULT stdio COMMAND...     runs the server, or a hook
//     fault.mjs FAULT http URL             stands before it, and prints its own address
//
// The fault `none` changes nothing: with it every check has to pass.

import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

import { SAMPLES, served } from "./samples.mjs";

const [fault, transport, ...target] = process.argv.slice(2);

const REJECTED = [...SAMPLES.values()].find((memory) => memory.status === "rejected" && memory.scope === "platform");
const OTHER = [...SAMPLES.values()].find((memory) => memory.scope === "platform" && served(memory.id));
const STRANGER = [...SAMPLES.values()].find((memory) => memory.scope === "ledger-api" && served(memory.id));

/** Calls `change` for every object in a value that is a memory. */
function memories(value, change) {
  if (Array.isArray(value)) {
    value.forEach((inner) => memories(inner, change));
  } else if (value && typeof value === "object") {
    if (SAMPLES.has(value.id) && value.status) {
      change(value);
    }
    Object.values(value).forEach((inner) => memories(inner, change));
  }
}

function hit(memory, status) {
  const { id, title, facts, concepts, project, created_at, scope, type } = memory;
  return { id, title, facts, concepts, project, created_at, scope, status, type };
}

/** Changes the answer of a tool, in its structure and in its text. */
function answer(change) {
  return (message) => {
    const structure = message.result?.structuredContent;
    if (structure) {
      change(structure);
      message.result.content = [{ type: "text", text: JSON.stringify(structure) }];
    }
  };
}

/** Asks for another memory than the client does. */
const another = (message) => {
  const { name, arguments: asked } = message.params ?? {};
  if (name === "get_memory" && SAMPLES.has(asked?.id) && served(asked.id)) {
    asked.id = asked.id === OTHER.id ? STRANGER.id : OTHER.id;
  }
};

/** The last result is the rejected memory, marked so. */
const rejected = (status) =>
  answer((structure) => {
    if (structure.results?.length > 1) {
      structure.results[structure.results.length - 1] = hit(REJECTED, status);
    }
  });
const FAULTS = {
  none: {},
  // Another memory than the one that was asked for, as such, or under its id.
  "another-memory": { request: another },
  "another-text": { answer: answer((structure) => memories(structure, (memory) => (memory.title = OTHER.title))) },
  // What was approved is marked as rejected.
  "marked-rejected": { answer: answer((structure) => memories(structure, (memory) => (memory.status = "rejected"))) },
  // What was rejected is there: marked as what it is, and as what it is not.
  "rejected-shown": { answer: rejected("rejected") },
  "rejected-as-approved": { answer: rejected("approved") },
  "staging-as-approved": {
    answer: answer((structure) => memories(structure, (memory) => (memory.status = memory.status === "staging" ? "approved" : memory.status))),
  },
  // Text on standard output: before the protocol, and within it.
  "text-before": { before: "ack-memory: serving 4 scopes" },
  "text-between": { between: "listed the scopes" },
  "answered-twice": { twice: true },
  // Whoever comes is let in; or whoever brings any token.
  "no-token": { authorization: () => true },
  "any-token": { authorization: (said) => Boolean(said) },
  // A tool is missing.
  "no-tool": { answer: (message) => (message.result?.tools ? (message.result.tools = []) : undefined) },
  // What a hook tells a session: nothing, the same again, a rejected memory, or as much as if it had just started.
  "not-told": { told: () => "" },
  "told-twice": { told: (text) => `${text}\n\n${text}` },
  "told-rejected": { told: (text) => `${text}\n> ${REJECTED.title}\n>   id ${REJECTED.id}` },
  "told-anew": { event: (event) => ({ ...event, source: "startup" }) },
};
const planted = FAULTS[fault];
if (!planted) {
  throw new Error(`there is no fault ${fault}: ${Object.keys(FAULTS)}`);
}

/** One message or several, changed. What is no JSON stays. */
function changed(text, change) {
  if (!change || !text) {
    return text;
  }
  try {
    const message = JSON.parse(text);
    [message].flat().forEach(change);
    return JSON.stringify(message);
  } catch {
    return text;
  }
}

async function whole(stream) {
  const parts = [];
  for await (const part of stream) {
    parts.push(part);
  }
  return Buffer.concat(parts.map((part) => Buffer.from(part))).toString();
}

async function hook() {
  const event = JSON.parse(await whole(process.stdin));
  const run = spawn(target[0], target.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  run.stdin.end(JSON.stringify(planted.event?.(event) ?? event));
  const said = await whole(run.stdout);
  if (!planted.told || !said.trim()) {
    return process.stdout.write(said);
  }
  // The text is a field of the answer, or of an object in it.
  const output = JSON.parse(said);
  const place = output.hookSpecificOutput ?? output;
  place.additionalContext = planted.told(place.additionalContext);
  console.log(JSON.stringify(output));
}

function overStdio() {
  const server = spawn(target[0], target.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  if (planted.before) {
    console.log(planted.before);
  }
  createInterface({ input: process.stdin })
    .on("line", (line) => server.stdin.write(`${changed(line, planted.request)}\n`))
    .on("close", () => server.stdin.end());
  let lines = 0;
  createInterface({ input: server.stdout }).on("line", (line) => {
    lines += 1;
    const said = changed(line, planted.answer);
    console.log(said);
    if (lines === 3 && planted.between) {
      console.log(planted.between);
    }
    if (lines === 3 && planted.twice) {
      console.log(said);
    }
  });
  server.on("close", (code) => process.exit(code ?? 1));
  process.on("SIGTERM", () => server.kill());
}

function overHttp() {
  const token = process.env.ACK_MEM_TOKEN;
  const address = new URL(target[0]);
  const proxy = createServer(async (request, response) => {
    const { host, connection, "content-length": length, "transfer-encoding": coding, ...headers } = request.headers;
    if (planted.authorization?.(headers.authorization)) {
      headers.authorization = `Bearer ${token}`;
    }
    const sent = changed(await whole(request), planted.request);
    const from = await fetch(new URL(request.url, address), { method: request.method, headers, body: sent || undefined });
    const said = await whole(from.body ?? []);
    const kind = from.headers.get("content-type") ?? "application/json";
    // Events of a stream, or one message.
    const body = kind.startsWith("text/event-stream")
      ? said.replace(/^data: (\{.*)$/gm, (_, message) => `data: ${changed(message, planted.answer)}`)
      : changed(said, planted.answer);
    response.writeHead(from.status, { "content-type": kind }).end(body);
  });
  proxy.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${proxy.address().port}${address.pathname}`));
}

if (transport === "http") {
  overHttp();
} else if (target.includes("hook")) {
  await hook();
} else {
  overStdio();
}
