// A real session of Claude Code with the real claude-mem, before and after `setup` switches it off, with a scripted model (model.mjs)
// in place of its own. Checked is what that model is sent.
//
//     gate.mjs
//
// Runs below the home folder that its check was given, with BINARY, ROOT and INTO in the environment (checks.sh).

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

import { AGENTS } from "./agents.mjs";
import { model as start, prompt } from "./model.mjs";
import { HIDDEN, named, served } from "./samples.mjs";

const { HOME, BINARY, ROOT, INTO } = process.env;
const OPENING = "ack-memory: reviewed memories about the project";
/** What claude-mem alone knows. */
const FOREIGN = "Zanzibar rounds the transfers";
/** One of its tools, by name. */
const SEARCH = /mcp__plugin_claude-mem_mcp-search__\w/;
const SETTINGS = join(HOME, ".claude/settings.json");
const MARKETPLACE = join(HOME, ".claude/plugins/marketplaces/thedotmack");
const PLUGIN = join(HOME, ".claude/plugins/cache/thedotmack/claude-mem");

const folder = join(HOME, "src/ledger-api");
mkdirSync(folder, { recursive: true });
const root = join(HOME, "memories");
cpSync(ROOT, root, { recursive: true });
const agent = AGENTS["claude-code"];
const model = await start();

/** A port that nobody listens at. */
const port = await new Promise((resolve) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => resolve(String(port)));
  });
});
const environment = {
  ...process.env,
  ...agent.environment(model.url),
  PATH: `${join(INTO, "claude-mem/node_modules/.bin")}:${join(INTO, "bun/node_modules/.bin")}:${process.env.PATH}`,
  PWD: folder,
  CLAUDE_MEM_WORKER_PORT: port,
  CLAUDE_MEM_CHROMA_ENABLED: "false",
  CLAUDE_MEM_ONLINE_OPTIN: "false",
};

function run(command, args, options) {
  return execFileSync(command, args, { cwd: folder, env: environment, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], ...options });
}

/** claude-mem's own installer. It fetches more than the plugin needs to add its memories, and nothing is reached here. */
function install() {
  try {
    run("claude-mem", ["install", "--provider", "claude", "--ide", "claude-code"], { timeout: 60_000 });
  } catch (error) {
    console.log(`the installer ends early: ${String(error.stdout).trim().split("\n").slice(-3).join(" ").slice(0, 300)}`);
  }
  // What the plugin needs besides, from where claude-mem itself was installed.
  const [version] = readdirSync(PLUGIN);
  symlinkSync(join(INTO, "claude-mem/node_modules"), join(PLUGIN, version, "node_modules"));
  // And the list of the marketplace, which Claude Code would fetch.
  const list = { name: "thedotmack", owner: { name: "thedotmack" }, plugins: [{ name: "claude-mem", source: "./plugin" }] };
  mkdirSync(join(MARKETPLACE, ".claude-plugin"), { recursive: true });
  writeFileSync(join(MARKETPLACE, ".claude-plugin/marketplace.json"), JSON.stringify(list));
  const settings = JSON.parse(readFileSync(SETTINGS, "utf8"));
  assert.equal(settings.enabledPlugins["claude-mem@thedotmack"], true, "the plugin is enabled");
}

const worker = (...args) => {
  const [version] = readdirSync(PLUGIN);
  return run("bun", [join(PLUGIN, version, "scripts/worker-service.cjs"), ...args], { timeout: 60_000 });
};

/** Gives claude-mem a memory of this project. */
async function remember() {
  worker("start");
  const answer = await fetch(`http://127.0.0.1:${port}/api/memory/save`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ title: FOREIGN, text: `${FOREIGN}, line by line.`, project: "ledger-api" }),
  });
  assert.ok(answer.ok, `claude-mem saves a memory: ${answer.status}`);
  // What it saves by hand has no concept, and what has none is not shown when a session starts.
  const concept = `update observations set concepts='["gotcha"]'`;
  const database = join(HOME, ".claude-mem/claude-mem.db");
  run("bun", ["-e", `new (require("bun:sqlite").Database)(${JSON.stringify(database)}).run(${JSON.stringify(concept)})`]);
}

function change(path, members) {
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...members }));
}

/** All that the model is sent in a session. */
function session() {
  model.requests.length = 0;
  const [command, ...args] = agent.run(prompt(1));
  const child = spawn(command, args, { cwd: folder, env: environment, stdio: ["ignore", "inherit", "inherit"] });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => {
      assert.equal(code, 0, "the session ends well");
      const said = model.requests.flatMap((request) => [...request.turns.map((turn) => turn.text), ...request.tools.map((tool) => tool.name)]);
      resolve(said.join("\n"));
    });
  });
}

/** Runs `setup` at a terminal and answers each question as its words ask for. */
function setup(answers) {
  const said = spawn("script", ["-qec", `'${BINARY}' --root '${root}' setup`, "/dev/null"], { cwd: folder, env: environment });
  let screen = "";
  let answered = 0;
  said.stdout.on("data", (data) => {
    screen += data;
    const [question] = screen.slice(answered).match(/\[[^\]\n]*\/[^\]\n]*\] $/) ?? [];
    if (question) {
      answered = screen.length;
      const line = screen.split("\n").at(-1);
      const [, key] = answers.find(([words]) => line.includes(words)) ?? [];
      said.stdin.write(`${key ?? "n"}\n`);
    }
  });
  return new Promise((resolve) => said.on("exit", () => resolve(screen)));
}

try {
  install();
  await remember();
  const before = readFileSync(SETTINGS, "utf8");
  assert.ok((await session()).includes(FOREIGN), "before, the session gets what claude-mem recorded");
  console.log("before: claude-mem's text is in the session");

  const screen = await setup([["claude-mem", "s"], ["switch it off", "y"], ["connect claude-code", "y"]]);
  assert.match(screen, /claude-mem@thedotmack[\s\S]*switched off/, screen);
  const text = await session();
  assert.ok(!text.includes(FOREIGN), "after, nothing of claude-mem is in the session");
  assert.ok(text.includes(OPENING), "after, the session gets approved memories");
  const ids = named(text);
  assert.ok(ids.length > 2 && ids.every(served), `something is told that nobody approved: ${ids}`);
  assert.deepEqual(HIDDEN.filter((title) => text.includes(title)), [], "memories that nobody approved were sent");
  console.log("after: approved text alone");

  run(BINARY, ["--root", root, "disconnect", "claude-code", "--yes"]);
  assert.equal(readFileSync(SETTINGS, "utf8"), before, "the way back restores every byte");
  assert.ok((await session()).includes(FOREIGN), "and claude-mem is on again");
  console.log("back: as before");

  // What docs/faq.md says of recording that goes on.
  const quiet = { CLAUDE_MEM_CONTEXT_OBSERVATIONS: "0", CLAUDE_MEM_CONTEXT_SESSION_COUNT: "0" };
  change(join(HOME, ".claude-mem/settings.json"), quiet);
  assert.match(await session(), SEARCH, "claude-mem's search tools are offered");
  change(SETTINGS, { permissions: { deny: ["mcp__plugin_claude-mem_mcp-search"] } });
  const recorded = await session();
  assert.ok(!recorded.includes(FOREIGN), "with two keys, claude-mem adds nothing");
  assert.doesNotMatch(recorded, SEARCH, "with the rule, its search tools are gone");
  console.log("recording alone: nothing of claude-mem is in the session");
} finally {
  worker("stop");
  model.close();
}
