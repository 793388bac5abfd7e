// How each agent is started for real: what its user has set up, and what is written on its command line. The model that it asks is at
// `model`; nothing else is reached.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { appServer } from "./codex-app.mjs";

const { HOME, BINARY, ROOT, INTO, FAULT } = process.env;

const program = (folder, name) => join(INTO, folder, "node_modules/.bin", name);

function write(path, content, mode = 0o644) {
  const file = join(HOME, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content, null, 2), { mode });
  return file;
}

/** What a client starts: the program, or a script that plants a fault before it. */
function launched() {
  if (!FAULT) {
    return BINARY;
  }
  const fault = fileURLToPath(new URL("fault.mjs", import.meta.url));
  return write("faulty/ack-memory", `#!/bin/sh\nexec '${process.execPath}' '${fault}' '${FAULT}' stdio '${BINARY}' "$@"\n`, 0o755);
}

const LAUNCHED = launched();
const SERVER = { command: LAUNCHED, args: ["--root", ROOT, "serve"] };

function connect(client, files, ...more) {
  execFileSync(BINARY, ["--root", ROOT, "connect", client, "--yes", ...more], { stdio: "inherit" });
  for (const path of files) {
    write(path, readFileSync(join(HOME, path), "utf8").replaceAll(BINARY, LAUNCHED));
  }
}

/** Trusts Codex's hooks in the way of its own screen. */
async function trustHooks(codex, folder) {
  const { ask, end } = await appServer(codex);
  const { data } = await ask("hooks/list", { cwds: [folder] });
  const hooks = data.flatMap((entry) => entry.hooks);
  const trusted = Object.fromEntries(hooks.map((hook) => [hook.key, { trusted_hash: hook.currentHash }]));
  await ask("config/batchWrite", { edits: [{ keyPath: "hooks.state", value: trusted, mergeStrategy: "upsert" }] });
  end();
}

/**
 * The agents. `prepare`: sets it up. `environment`: besides what every check has. `run(prompt)` and
 * `resume(prompt)`: its command line for a session that starts and for one that continues.
 * `cleared(prompts)`: one whose conversation is emptied between two prompts, with what is written
 * to standard input, one text after each turn. `free(prompt)`: one for a session in which tools run
 * without asking. `errands`: what is done there, because the client has a hook for it: a file is
 * written (`write`), a command fails (`fail`), a subagent starts (`delegate`).
 *
 * `offers`: a tool's whole description, its name, or only a line about its server. `told`: whether
 * a session that starts gets the memories. `prompted`: whether a prompt gets those near it.
 * `resumed`: `added` if the conversation still has the first text and a brief one is added, `again`
 * if the whole text comes again.
 */
export const AGENTS = {
  "claude-code": {
    offers: "name",
    prompted: true,
    told: true,
    resumed: "added",
    prepare: () => connect("claude-code", [".claude.json", ".claude/settings.json"], "--prompt-hook", "--edit-hook", "--failure-hook"),
    environment: (model) => ({
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
    }),
    run: (prompt) => [program("claude", "claude"), "-p", prompt],
    resume: (prompt) => [program("claude", "claude"), "--continue", "-p", prompt],
    errands: ["write", "fail", "delegate"],
    free: (prompt) => [program("claude", "claude"), "-p", prompt, "--permission-mode", "acceptEdits", "--allowedTools", "Bash"],
    cleared: (prompts) => ({
      command: [program("claude", "claude"), "-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"],
      lines: [prompts[0], "/clear", prompts[1]].map((content) => JSON.stringify({ type: "user", message: { role: "user", content } })),
      ended: /^\{.*"type":"result"/,
    }),
  },

  codex: {
    offers: "line",
    prompted: true,
    told: true,
    resumed: "added",
    async prepare(model, folder) {
      const config = [
        // A model of today, whose tools are functions of one program.
        `model = "gpt-6-astra"\nmodel_provider = "scripted"`,
        `[model_providers.scripted]\nname = "scripted"\nbase_url = "${model}/v1"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"`,
        `[analytics]\nenabled = false`,
        `[projects."${folder}"]\ntrust_level = "trusted"`,
      ];
      write(".codex/config.toml", `${config.join("\n\n")}\n`);
      connect("codex", [".codex/config.toml", ".codex/hooks.json"], "--prompt-hook", "--edit-hook", "--failure-hook");
      await trustHooks(program("codex", "codex"), folder);
    },
    environment: () => ({ SCRIPTED_KEY: "none" }),
    run: (prompt) => [program("codex", "codex"), "exec", "--skip-git-repo-check", prompt],
    resume: (prompt) => [program("codex", "codex"), "exec", "--skip-git-repo-check", "resume", "--last", prompt],
    errands: ["write", "fail", "delegate"],
    free: (prompt) => [program("codex", "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt],
  },

  gemini: {
    offers: "schema",
    prompted: true,
    told: true,
    resumed: "again",
    prepare() {
      write(".gemini/settings.json", {
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      });
      connect("gemini", [".gemini/settings.json"], "--prompt-hook", "--failure-hook");
    },
    environment: (model) => ({ GOOGLE_GEMINI_BASE_URL: model, GEMINI_API_KEY: "none", GEMINI_CLI_TRUST_WORKSPACE: "true" }),
    run: (prompt) => [program("gemini", "gemini"), "-m", "gemini-2.5-pro", "-p", prompt],
    resume: (prompt) => [program("gemini", "gemini"), "-m", "gemini-2.5-pro", "--resume", "latest", "-p", prompt],
    errands: ["fail"],
    free: (prompt) => [program("gemini", "gemini"), "-m", "gemini-2.5-pro", "--yolo", "-p", prompt],
  },

  opencode: {
    offers: "schema",
    told: false,
    prepare: (model) =>
      write(".config/opencode/opencode.json", {
        autoupdate: false,
        share: "disabled",
        model: "scripted/scripted",
        small_model: "scripted/scripted",
        provider: {
          scripted: {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: `${model}/v1`, apiKey: "none" },
            models: { scripted: {} },
          },
        },
        mcp: { "ack-memory": { type: "local", command: [SERVER.command, ...SERVER.args], enabled: true } },
      }),
    environment: () => ({ OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" }),
    run: (prompt) => [program("opencode", "opencode"), "run", prompt],
    resume: (prompt) => [program("opencode", "opencode"), "run", "--continue", prompt],
  },

  copilot: {
    offers: "schema",
    told: true,
    resumed: "again",
    prepare: () => connect("copilot", [".copilot/mcp-config.json", ".copilot/hooks/ack-memory.json"], "--edit-hook", "--failure-hook"),
    environment: (model) => ({
      COPILOT_PROVIDER_BASE_URL: `${model}/v1`,
      COPILOT_PROVIDER_API_KEY: "none",
      // It gets tools that create and edit files; other models write patches.
      COPILOT_MODEL: "claude-sonnet-4.5",
      COPILOT_OFFLINE: "true",
    }),
    run: (prompt) => [program("copilot", "copilot"), "-p", prompt],
    resume: (prompt) => [program("copilot", "copilot"), "--continue", "-p", prompt],
    errands: ["write", "fail"],
    free: (prompt) => [program("copilot", "copilot"), "--allow-all-tools", "-p", prompt],
  },

  qwen: {
    offers: "name",
    told: true,
    resumed: "again",
    prepare() {
      write(".qwen/settings.json", {
        security: { auth: { selectedType: "openai" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      });
      connect("qwen", [".qwen/settings.json"], "--failure-hook");
    },
    environment: (model) => ({ OPENAI_BASE_URL: `${model}/v1`, OPENAI_API_KEY: "none", OPENAI_MODEL: "scripted" }),
    run: (prompt) => [program("qwen", "qwen"), "-p", prompt],
    resume: (prompt) => [program("qwen", "qwen"), "--continue", "-p", prompt],
    errands: ["fail"],
    free: (prompt) => [program("qwen", "qwen"), "--yolo", "-p", prompt],
  },

  cline: {
    offers: "schema",
    told: false,
    prepare: (model) => {
      write(".cline/data/settings/cline_mcp_settings.json", { mcpServers: { "ack-memory": SERVER } });
      const settings = { provider: "openai-compatible", apiKey: "none", model: "scripted", baseUrl: `${model}/v1` };
      const providers = { "openai-compatible": { settings, tokenSource: "manual", updatedAt: "2026-11-01T00:00:00Z" } };
      write(".cline/data/settings/providers.json", { version: 1, lastUsedProvider: "openai-compatible", modes: {}, providers });
    },
    // With a folder of data that is named it starts no process that stays.
    environment: () => ({ CLINE_NO_AUTO_UPDATE: "1", DO_NOT_TRACK: "1" }),
    run: (prompt) => [program("cline", "cline"), "--data-dir", join(HOME, ".cline/data"), prompt],
  },
};
