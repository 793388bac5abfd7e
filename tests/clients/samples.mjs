// The sample memories as their files in scopes-example/ have them: what an answer may say, told by something else than the server.

import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("../../scopes-example/", import.meta.url);
const scopes = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());

/** Every sample memory by its id. */
export const SAMPLES = new Map(
  scopes.flatMap(({ name: scope }) => {
    const lines = readFileSync(new URL(`${scope}/memories.jsonl`, folder), "utf8").split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line)).map((memory) => [memory.id, { ...memory, scope }]);
  }),
);

/** Whether an agent may see a memory. */
export const served = (id) => ["approved", "promoted"].includes(SAMPLES.get(id)?.status);

/** Titles that no agent may see unasked. */
export const HIDDEN = [...SAMPLES.values()].filter(({ id }) => !served(id)).map((memory) => memory.title);

/** The sample ids that a text names, in its order. */
export const named = (text) => (text.match(/ack_[0-9a-f]{6}_\d{4}-\d\d-\d\d_\d{3}/g) ?? []).filter((id) => SAMPLES.has(id));

// The best match of what is asked below is a rejected memory, and an approved one says the same.
export const QUESTION = "container killed with exit code 137, SIGKILL, mostly for memory";
export const ANSWER = "ack_c03d5e_2026-05-19_008";
