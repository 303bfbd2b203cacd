/** Tells whether the settings file of a running copy was changed after the start. Changes take effect at the next start. */
import { statSync } from "node:fs";
import type { Environment } from "../settings.ts";
import { settingsPath } from "./sources.ts";

/** The file that a copy was started with, or would have been if it had been there. */
export interface SettingsFile {
  path: string;
  /** Absent: there was no file. */
  mtimeMs?: number;
}

export function settingsFileOf(dataDir: string, env: Environment): SettingsFile {
  const path = settingsPath(dataDir, env);
  const mtimeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return { path, ...(mtimeMs === undefined ? {} : { mtimeMs }) };
}

/** Returns the path of a file that has changed since. Undefined also when this user cannot see the file. */
export function changedSettingsFile(started: SettingsFile | undefined): string | undefined {
  if (started === undefined) return undefined;
  const { path, mtimeMs } = started;
  try {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs === mtimeMs ? undefined : path;
  } catch {
    return undefined;
  }
}
