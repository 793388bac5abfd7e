// A real session of an agent, with a scripted model (model.mjs) in place of its own. Checked is what that model is sent.
//
//     agent.mjs NAME
//
// Runs below the home folder that its check was given, with BINARY, ROOT and INTO in the environment (checks.sh).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { AGENTS } from "./agents.mjs";
import { TASK, delegating, failing, model as start, prompt, writing } from "./model.mjs";
import { ANSWER, HIDDEN, SAMPLES, named, served } from "./samples.mjs";

const TOOLS = ["get_context", "get_memory", "list_scopes", "query_memories"];
/** How the text of a session that starts begins, in every client. */
const OPENING = "ack-memory: reviewed memories about the project";
/** And how that of a prompt does. */
const NEAR = "ack-memory: reviewed memories near this prompt";
/** And how that of a file that is about to be written does. */
const FILE = "crates/transfers/src/lock.rs";
const ABOUT = `ack-memory: reviewed memories about ${FILE}`;
/** And that of a command that failed, whose output says why. */
const EXPLAINED = "ack-memory: a reviewed memory about this error";
const ERROR = 'ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile": pnpm-lock.yaml is not up to date with package.json';
const PROJECT = "ledger-api";
/** No session of two short turns takes longer. */
const PATIENCE = 60_000;

const agent = AGENTS[process.argv[2]];
// The samples say of this path that it is the project's.
const folder = join(process.env.HOME, "src", PROJECT);
mkdirSync(folder, { recursive: true });
const model = await start();

/** Runs a command line in the project's folder until it ends. `lines` go in one by one, each when a line has said that the turn before is over. */
function session([command, ...args], { lines = [], ended } = {}) {
  const environment = { ...process.env, ...agent.environment(model.url), PWD: folder };
  const process_ = spawn(command, args, { cwd: folder, env: environment, detached: true, stdio: ["pipe", "pipe", "inherit"] });
  const rest = [...lines];
  const feed = () => (rest.length > 0 ? process_.stdin.write(`${rest.shift()}\n`) : process_.stdin.end());
  feed();
  createInterface({ input: process_.stdout }).on("line", (line) => {
    console.log(line.slice(0, 300));
    if (ended?.test(line)) {
      feed();
    }
  });
  return new Promise((resolve, reject) => {
    const end = () => {
      try {
        process.kill(-process_.pid, "SIGKILL");
      } catch {
        // Nothing of it is left.
      }
    };
    const late = setTimeout(() => {
      end();
      reject(new Error(`${command} is not done after ${PATIENCE / 1_000} seconds; ${model.requests.length} requests came`));
    }, PATIENCE);
    process_.on("error", reject);
    process_.on("exit", (code) => {
      clearTimeout(late);
      end();
      if (code === 0) {
        resolve();
      } else {
        reject(new Error(`${command} ended with ${code}`));
      }
    });
  });
}

/** The requests of a turn: those that offer tools and have its prompt, but not the next one's. */
function requests(turn) {
  const has = (request, number) => request.turns.some((said) => said.text.includes(prompt(number)));
  return model.requests.filter((request) => request.tools.length > 0 && has(request, turn) && !has(request, turn + 1));
}

/** The texts of ours that a request holds, those of sessions or of prompts, each as the ids that it tells. */
function told(request, opening = OPENING) {
  const texts = request.turns.flatMap(({ text }) => text.split(/(?=ack-memory: (?:a )?reviewed memor)/));
  return texts.filter((text) => text.startsWith(opening)).map(named);
}

/** What is told when a session starts: several memories of this project, and none that nobody approved. */
function isWhole(ids) {
  const own = ids.filter((id) => SAMPLES.get(id).project === PROJECT);
  assert.ok(own.length > 2, `too little of this project is told: ${ids}`);
  assert.ok(ids.every(served), `something is told that nobody approved: ${ids}`);
}

/** The tools are there in the way in which this client shows tools, all of them. */
function offered(request) {
  const whole = request.tools.map(({ name }) => name ?? "").filter((name) => TOOLS.some((tool) => name.endsWith(tool)));
  const text = request.turns.map((said) => said.text).join("\n");
  const seen = {
    schema: TOOLS.every((tool) => whole.some((name) => name.endsWith(tool))),
    // The tool that asks to be there at once has its description in place of its name.
    name: TOOLS.every((tool) => text.includes(`__${tool}`) || whole.some((name) => name.endsWith(tool))),
    line: /ack[-_]memory: \w/.test(text),
  };
  assert.ok(seen[agent.offers], `the tools are not offered (${agent.offers}): ${request.tools.map(({ name }) => name)}`);
}

/** A turn: the tool was called, and what it answered is in the last request, once, and all of it may be seen. */
function answered(turn) {
  const sent = requests(turn);
  assert.ok(sent.length > 1, `the prompt ${turn} led to ${sent.length} requests of ${model.requests.length}`);
  const result = sent.at(-1).turns.findLast((said) => said.role === "result");
  assert.ok(result?.text.includes(ANSWER), `the memory is not in the result: ${result?.text.slice(0, 600)}`);
  assert.ok(named(result.text).every(served), `something is in the result that nobody approved: ${named(result.text)}`);
  return sent;
}

function started() {
  const [first] = requests(1);
  assert.ok(first, `no request came with the prompt, of ${model.requests.length}`);
  offered(first);
  answered(1);
  const texts = told(first);
  assert.equal(texts.length, agent.told ? 1 : 0, "the session is told of the memories once, where it has a hook");
  texts.forEach(isWhole);
  const near = told(first, NEAR);
  assert.equal(near.length, agent.prompted ? 1 : 0, "the prompt is told of the memories near it once, where it has a hook");
  assert.ok(near.every((ids) => ids.includes(ANSWER) && ids.every(served)), `not what is near, or not approved: ${near}`);
  return texts[0];
}

function resumed(before) {
  const texts = told(answered(2)[0]);
  if (agent.resumed === "added") {
    assert.equal(texts.length, 2, "beside the text that the conversation has, one comes");
    assert.ok(texts[1].length > 0 && texts[1].length < before.length, `the second text is a short one: ${texts[1]}`);
  } else {
    assert.equal(texts.length, before ? 1 : 0, "the conversation has one text");
    assert.deepEqual(texts[0], before, "the whole of it");
  }
}

await agent.prepare(model.url, folder);
await session(agent.run(prompt(1)));
const before = started();
console.log("started, told, offered, called");
if (agent.resume) {
  await session(agent.resume(prompt(2)));
  resumed(before);
  console.log("resumed");
}
if (agent.cleared) {
  model.requests.length = 0;
  const { command, ...more } = agent.cleared([prompt(1), prompt(2)]);
  await session(command, more);
  started();
  const texts = told(answered(2)[0]);
  assert.deepEqual(texts, [before], "a conversation that was emptied is told again, once");
  console.log("cleared");
}
const errands = {
  async write() {
    // Codex patches by the path from the folder, the others write by the whole one.
    const path = process.argv[2] === "codex" ? FILE : join(folder, FILE);
    const texts = told((await requestsOf(writing(path))).at(-1), ABOUT);
    assert.equal(texts.length, 1, "what is known about the file is told before it is written");
    isServed(texts[0]);
  },

  async fail() {
    // Qwen Code may lose the output of a command that ends at once.
    writeFileSync(join(folder, "install.sh"), `echo '${ERROR}'\nsleep 1\nexit 1\n`);
    const sent = await requestsOf(failing("install.sh"));
    const texts = sent.map((request) => told(request, EXPLAINED));
    assert.deepEqual(texts.map((found) => found.length), [0, 1, 1], "a command failed twice, and the error is explained once");
    isServed(texts[1][0]);
  },

  async delegate() {
    const isTask = ({ role, name, text }) => role !== "result" && !name && text.includes(TASK);
    const [first] = (await requestsOf(delegating)).filter((request) => request.turns.some(isTask));
    assert.ok(first, "no subagent asked");
    const texts = told(first);
    assert.equal(texts.length, 1, "a subagent is told of the memories once");
    assert.ok(texts[0].length <= 6, `the titles of six at most: ${texts[0]}`);
    isServed(texts[0]);
  },
};

/** Something is told, and all of it may be seen. */
function isServed(ids) {
  assert.ok(ids.length > 0 && ids.every(served), `nothing is told, or something that nobody approved: ${ids}`);
}

/** What is sent in a session in which tools run without asking. */
async function requestsOf(said) {
  const before = model.requests.length;
  await session(agent.free(said));
  return model.requests.slice(before).filter((request) => request.tools.length > 0);
}

for (const errand of agent.errands ?? []) {
  await errands[errand]();
  console.log(`errand: ${errand}`);
}
const sent = JSON.stringify(model.requests.map((request) => request.body));
const seen = HIDDEN.filter((title) => sent.includes(JSON.stringify(title).slice(1, -1)));
assert.deepEqual(seen, [], "memories that nobody approved were sent to the model");
model.close();
