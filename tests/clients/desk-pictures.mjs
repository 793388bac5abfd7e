// Takes the pictures of docs/review.md from the sample scopes:
//
//     BINARY=target/debug/ack-memory CHROMIUM=/usr/bin/chromium INTO=FOLDER node desk-pictures.mjs
//
// FOLDER is the one in which run.sh has installed playwright-core (`run.sh --only desk`).

import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Root, end, open, press, settled } from "./desk-page.mjs";

const ASSETS = fileURLToPath(new URL("../../docs/assets/", import.meta.url));
/** The card that is shown: its nearest approved memory contradicts it. */
const SHOWN = "connection pool";

/** The sample scopes, with half of what is approved in `platform` waiting again. */
function samples() {
  const root = new Root([]);
  rmSync(join(root.path, "scopes"), { recursive: true, force: true });
  execFileSync(process.env.BINARY, ["demo", root.path], { stdio: "ignore" });
  const listed = JSON.parse(root.run("query", "--scope", "platform", "--limit", "50", "--json"));
  const ids = listed.results.map((hit) => hit.id).filter((_, position) => position % 2 === 0);
  root.run("stage", ...ids, "--scope", "platform");
  return root;
}

const root = samples();
const { address } = await root.review();
const page = await open(address, { width: 1280, height: 860, colorScheme: "light" });
const picture = async (name) => {
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(700);
  await page.screenshot({ path: join(ASSETS, `review-${name}.png`) });
};
await press(page, "a", "2");
await page.fill("#filter", SHOWN);
await settled(page);
await page.waitForTimeout(600);
await page.fill("#filter", "");
await page.waitForTimeout(600);
await press(page, "Escape");
await picture("light");
await press(page, "r");
await picture("reason");
await press(page, "Escape");
await page.emulateMedia({ colorScheme: "dark" });
await page.setViewportSize({ width: 400, height: 860 });
await picture("narrow");
await end();
