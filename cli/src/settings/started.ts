/**
 * Which settings a running copy was started with, for commands that find it running: what they are told then counts from the next
 * start, and they say so. Kept as keyed digests, in a file of root: no setting can be read from it.
 */
import { createHmac, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../settings.ts";
import { isSetting } from "./sources.ts";

/** In the folder `run/` of a copy. */
export const STARTED_SETTINGS = "settings.json";

/**
 * They say which copy is meant and where its settings are; a change of the image's has words of its own; the token is one of
 * commands, which no component reads.
 */
const APART = ["SVC_DATA_DIR", "SVC_SETTINGS_FILE", "SVC_LANGUAGES", "SVC_PACKAGES", "SVC_TOKEN"];

interface Digests {
  key: string;
  settings: Record<string, string>;
}

function digestsOf(values: Environment, key: string): Record<string, string> {
  const digest = (value: string) => createHmac("sha256", key).update(value).digest("base64url");
  const ours = Object.entries(values).filter(([name]) => isSetting(name) && !APART.includes(name));
  return Object.fromEntries(ours.flatMap(([name, value]) => (value ? [[name, digest(value)]] : [])));
}

/** Called by the supervisor, before it chooses anything itself. */
export function keepStartedSettings(runDir: string, values: Environment): void {
  const key = randomBytes(32).toString("base64url");
  const digests: Digests = { key, settings: digestsOf(values, key) };
  writeFileSync(join(runDir, STARTED_SETTINGS), JSON.stringify(digests), { mode: 0o600 });
}

/** Names of settings that have another value now, or one where there was none, or none; sorted. Empty where nothing is known. */
export function settingsSinceStart(runDir: string, values: Environment): string[] {
  const started = readStarted(runDir);
  if (started === undefined) return [];
  const now = digestsOf(values, started.key);
  const names = new Set([...Object.keys(started.settings), ...Object.keys(now)]);
  return [...names].filter((name) => started.settings[name] !== now[name]).sort();
}

/** Undefined where a supervisor of an earlier version runs, and for others than root. */
function readStarted(runDir: string): Digests | undefined {
  try {
    return JSON.parse(readFileSync(join(runDir, STARTED_SETTINGS), "utf8")) as Digests;
  } catch {
    return undefined;
  }
}
