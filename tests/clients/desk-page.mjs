// The desk of `ack-memory review` in a real browser: Debian's Chromium, driven by playwright-core.
//
// CHROMIUM names the browser, INTO the folder with the npm packages, BINARY the program. FAULT
// names a fault that is planted between the page and its server (`run.sh --self-test`).

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { BINARY, CHROMIUM, FAULT, HOME, INTO } = process.env;
const TOKEN = "a-token-of-the-owner";
const PATIENCE = 20_000;

const from = (name) => createRequire(join(INTO, name, "node_modules", "x.js"));

/** A memory as a line for `import`; one that waits unless `rest` says otherwise. */
export function memory(id, title, rest = {}) {
  return {
    id,
    title,
    status: "staging",
    project: "shop",
    created_at: "2026-10-01T00:00:00Z",
    ...rest,
  };
}

/** A root with one scope. */
export class Root {
  constructor(memories) {
    this.path = mkdtempSync(join(HOME, "root-"));
    this.scope = "notes";
    // `import` refuses a file without a line.
    if (memories.length > 0) {
      this.import(memories);
    }
  }

  run(...words) {
    writeFileSync(join(this.path, "curator-token"), `${TOKEN}\n`);
    return execFileSync(BINARY, ["--root", this.path, ...words], {
      encoding: "utf8",
      env: { ...process.env, ACK_MEM_CURATOR_TOKEN: TOKEN, USER: "ana" },
      maxBuffer: 1 << 28,
    });
  }

  import(memories, ...more) {
    const file = join(this.path, "lines.jsonl");
    writeFileSync(file, memories.map((line) => `${JSON.stringify(line)}\n`).join(""));
    this.run("import", file, "--scope", this.scope, ...more);
  }

  /** The lines of the decision log. */
  log() {
    const path = join(this.path, "scopes", this.scope, "decisions.jsonl");
    try {
      return readFileSync(path, "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    } catch (error) {
      assert.equal(error.code, "ENOENT", String(error));
      return [];
    }
  }

  /** The ids that agents see, at most fifty. */
  seen() {
    const answer = JSON.parse(this.run("query", "--limit", "50", "--json"));
    return answer.results.map((hit) => hit.id).sort();
  }

  /** Starts `review` and waits for its address. */
  async review(...more) {
    const server = spawn(BINARY, ["--root", this.path, "review", "--browser", ...more], {
      env: { ...process.env, ACK_MEM_CURATOR_TOKEN: TOKEN, USER: "ana" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    server.said = "";
    server.ended = new Promise((resolve) =>
      server.on("exit", (code, signal) => resolve(code ?? signal)),
    );
    server.stdout.on("data", (text) => (server.said += text));
    const address = await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`no address: ${server.said}`)), PATIENCE);
      server.stderr.on("data", (text) => {
        server.said += text;
        const found = /http:\/\/127\.0\.0\.1:\d+\/#[0-9a-f]+/.exec(server.said);
        if (found) {
          clearTimeout(late);
          resolve(found[0]);
        }
      });
      server.on("exit", () => reject(new Error(`the desk ended: ${server.said}`)));
    });
    servers.push(server);
    return { server, address };
  }
}

const servers = [];
let browser;

/** Ends what was started. */
export async function end() {
  await browser?.close();
  for (const server of servers) {
    server.kill("SIGKILL");
  }
}

/** Opens an address in a window of its own. */
export async function open(address, { width = 1280, height = 900, plan = false, ...more } = {}) {
  const { chromium } = from("playwright-core")("playwright-core");
  mkdirSync(join(HOME, "browser"), { recursive: true });
  browser ??= await chromium.launch({
    executablePath: CHROMIUM,
    // A container has neither namespaces for the sandbox nor much shared memory.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-lcd-text"],
  });
  const context = await browser.newContext({ viewport: { width, height }, ...more });
  const page = await context.newPage();
  page.problems = [];
  page.requests = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  page.on("request", (request) => page.requests.push(request.url()));
  await plant(page);
  await page.goto(address);
  await page.waitForSelector("#title, #heaps li, #alarm:not(:empty)");
  await settled(page);
  if (!plan && (await page.isVisible("#plan"))) {
    await press(page, "o");
  }
  return page;
}

/** Faults that the checks must notice. */
const FAULTS = {
  none: async () => undefined,
  // Memory text becomes markup.
  markup: (page) =>
    script(
      page,
      "made.append(",
      "made.innerHTML = children.filter((x) => typeof x === 'string').join(''); made.append(",
    ),
  // What is pressed acts on another memory than the one that is shown.
  "another-memory": (page) =>
    script(
      page,
      "numbers = [state.shown.number]",
      "numbers = [state.shown.next ?? state.shown.number]",
    ),
  // Focus goes nowhere after a decision.
  "focus-lost": (page) =>
    script(
      page,
      'focusOn("title");\n  window',
      "document.activeElement.blur();\n  window",
    ),
  // The whole queue is put into the page.
  "whole-queue": (page) => script(page, "const WINDOW = 60;", "const WINDOW = 200;"),
  // Text that can hardly be read.
  faint: (page) => script(page, "--quiet: light-dark(#5f5b54,", "--quiet: light-dark(#b5b2ab,"),
  // The page is wider than a narrow window.
  wide: (page) => script(page, "#card { padding: 1.5rem 2rem; }", "#card { min-width: 60rem; }"),
  // Undo says that it undid, and does not.
  "not-undone": (page) =>
    page.route("**/back", async (route) => {
      const answer = await route.fetch({ url: route.request().url().replace("back", "summary") });
      const summary = await answer.json();
      await route.fulfill({ json: { numbers: [0], summary } });
    }),
  // What differs from an approved memory is not marked.
  "no-difference": (page) => script(page, 'side === "both"', "true"),
  // What was put back is not told.
  "change-hidden": (page) =>
    page.route("**/write", async (route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({ json: { ...answer, conflicts: "" } });
    }),
  // The page does not notice that its server is gone.
  "end-hidden": (page) => script(page, "if (!state.over)", "if (false)"),
};

/** Has the page run with other text, and with a policy that lets it. */
function script(page, before, after) {
  return page.route("**/", async (route) => {
    const answer = await route.fetch();
    const text = await answer.text();
    assert.ok(
      text.includes(before),
      `the page has changed, and the fault ${FAULT} cannot be planted`,
    );
    const headers = { ...answer.headers() };
    delete headers["content-security-policy"];
    await route.fulfill({ response: answer, headers, body: text.replaceAll(before, after) });
  });
}

async function plant(page) {
  await FAULTS[FAULT || "none"](page);
}

/** Presses keys one after the other, each once what the one before did is there. */
export async function press(page, ...keys) {
  for (const key of keys) {
    await page.keyboard.press(key);
    await settled(page);
  }
}

/** Waits until the page has done what it was told. */
export async function settled(page) {
  await page.waitForSelector("html:not([data-busy])", { state: "attached", timeout: PATIENCE });
}

export const title = (page) => page.textContent("#title");
export const said = (page) => page.textContent("#said");
export const alarm = (page) => page.textContent("#alarm");

/** What axe-core finds wrong with the page. */
export async function violations(page) {
  const { source } = from("axe-core")("axe-core");
  await page.evaluate(source);
  const { violations: found } = await page.evaluate(() =>
    globalThis.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    }),
  );
  return found.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`,
  );
}
