/** Whether the settings file of a running copy was written since the copy was started: what it says now counts from the next start. */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../settings.ts";
import { FILE_NAME } from "./sources.ts";

/** The file that a copy was started with, or would have been if it had been there. */
export interface SettingsFile {
  path: string;
  /** Absent: there was no file. */
  mtimeMs?: number;
}

export function settingsFileOf(dataDir: string, { SVC_SETTINGS_FILE }: Environment): SettingsFile {
  const path = SVC_SETTINGS_FILE || join(dataDir, FILE_NAME);
  const mtimeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return { path, ...(mtimeMs === undefined ? {} : { mtimeMs }) };
}

/** The path of a file that is another one now. Nothing is said where it cannot be seen. */
export function changedSettingsFile(started: SettingsFile | undefined): string | undefined {
  if (started === undefined) return undefined;
  const { path, mtimeMs } = started;
  try {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs === mtimeMs ? undefined : path;
  } catch {
    return undefined;
  }
}
