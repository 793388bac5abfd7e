// Takes the pictures of docs/review.md from the sample scopes:
//
//     BINARY=target/debug/ack-memory CHROMIUM=/usr/bin/chromium INTO=FOLDER node desk-pictures.mjs
//
// FOLDER is the one in which run.sh has installed playwright-core (`run.sh --only desk`). The plan, the
// approved memories and the last screen are of the sample store that ACK_TEST_REAL_STORES names.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Root, end, memory, open, press, settled } from "./desk-page.mjs";
import { shrink } from "./png.mjs";

const ASSETS = fileURLToPath(new URL("../../docs/assets/", import.meta.url));

const root = new Root([]);
rmSync(root.path, { recursive: true });
execFileSync(process.env.BINARY, ["demo", root.path], { stdio: "ignore" });
// What waits in the samples contradicts nothing that is approved in them: this does.
root.scope = "platform";
root.import([
  memory("ack_5e1f77_2026-11-20_001", "Exit code 137 is SIGKILL: look for OOMKilled first", {
    project: "platform",
    type: "gotcha",
    created_at: "2026-11-20T09:30:00Z",
    date: "2026-11-20",
    session: "platform-worker-restarts",
    subtitle: "128 + 9; 143 is SIGTERM (128 + 15)",
    facts: [
      "In Kubernetes lastState.terminated.reason is OOMKilled",
      "137 without OOMKilled never means that the grace period ran out",
      "The limit of the worker is 768 Mi now",
    ],
    concepts: ["kubernetes", "memory", "oom"],
    files: ["deploy/worker.yaml"],
    narrative:
      "The worker restarted every few hours. Its log ended in the middle of a line. The limit " +
      "was 512 Mi, and a batch of large images needs more.",
    confidence: 0.8,
  }),
]);
let page;
const picture = async (name) => {
  await page.waitForTimeout(800);
  writeFileSync(join(ASSETS, `review-${name}.png`), shrink(await page.screenshot()));
};
const { address } = await root.review();
page = await open(address, { width: 1280, height: 800, colorScheme: "light" });
await press(page, "a", "2");
await settled(page);
await page.locator("#queue li button", { hasText: "Deadlock 40P01" }).click();
await settled(page);
await picture("light");
await press(page, "r");
await picture("reason");
await press(page, "Escape");
await page.emulateMedia({ colorScheme: "dark" });
await page.setViewportSize({ width: 400, height: 860 });
await picture("narrow");

const samples = process.env.ACK_TEST_REAL_STORES;
if (samples) {
  const mem = new Root([]);
  const folder = join(mem.path, "scopes", "claude-mem");
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(samples, "claude-mem", "claude-mem.db"), join(folder, "claude-mem.db"));
  writeFileSync(join(folder, "scope.toml"), 'store = "claude-mem.db"\n');
  mem.run("scopes");
  const { address: plan } = await mem.review();
  page = await open(plan, { width: 1280, height: 800, plan: true, colorScheme: "light" });
  await page.waitForSelector(".missed .track", { timeout: 120_000 });
  await press(page, "j", "R");
  await picture("plan");
  await press(page, "g", "A", "A", "A", "A", "c");
  await page.waitForSelector("#answered:not([hidden])", { timeout: 120_000 });
  await picture("closing");
}
await end();
