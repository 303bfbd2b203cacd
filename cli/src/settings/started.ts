/**
 * Records which settings a running copy was started with. Commands that find it running compare their own settings and warn
 * that a difference takes effect only at the next start. Only keyed digests are stored, in a file of root, so no setting can
 * be read from it.
 */
import { createHmac, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../settings.ts";
import { isSetting } from "./sources.ts";

/** In the folder `run/` of a copy. */
export const STARTED_SETTINGS = "settings.json";

/**
 * Excluded: the variables that say which copy is meant and where its settings are; the variables of the image, whose changes
 * have a message of their own; and the token, which only commands use and no component reads.
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

/** The supervisor calls this before it chooses any setting itself. */
export function keepStartedSettings(runDir: string, values: Environment): void {
  const key = randomBytes(32).toString("base64url");
  const digests: Digests = { key, settings: digestsOf(values, key) };
  writeFileSync(join(runDir, STARTED_SETTINGS), JSON.stringify(digests), { mode: 0o600 });
}

/** Sorted names of settings that differ from the start: changed, added or removed. Empty when nothing is known about the start. */
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
