/**
 * The state of a running copy, for the other commands: <data>/run/state.json. Only the supervisor writes it, and always as a
 * whole. A state whose supervisor is gone counts as no state.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ImageContent } from "../install/image.ts";
import type { Service } from "../instance.ts";
import type { Mode } from "../mode.ts";
import type { SettingsFile } from "../settings/changed.ts";
import { isAlive, type ProcessIdentity } from "../system/process.ts";
import type { ComponentName } from "../topology.ts";
import type { Version } from "../version.ts";

export interface ComponentState {
  name: ComponentName;
  /** Absent while the component waits for its next start. */
  process?: ProcessIdentity;
  startedAt?: string;
  restarts: number;
  lastExit?: string;
}

export interface State {
  version: 1;
  supervisor: ProcessIdentity;
  phase: "starting" | "running" | "stopping";
  background: boolean;
  startedAt: string;
  url: string;
  dataDir: string;
  ports: Record<Service, number>;
  cgroup: string;
  /** Whether callers must show credentials, and which keys count. Absent while a supervisor of an earlier version runs. */
  mode?: Mode;
  /** Whether every component except jaild and the launcher runs as a user of its own. */
  unprivileged: boolean;
  /** Entries of /proc other than processes, when everything was started. */
  procEntries: string[];
  /** The size of each log at that time. */
  logStarts: Record<string, number>;
  /** Programs that may run at once. */
  slots: number;
  /** The image that jails use until everything stops. Absent while a supervisor of an earlier version runs. */
  image?: ImageContent | undefined;
  /** The file that settings were read from. Absent while a supervisor of an earlier version runs. */
  settingsFile?: SettingsFile;
  /** The longest time that an orderly stop may take. Absent while a supervisor of an earlier version runs. */
  stopSeconds?: number;
  /** The version that the components were started from. */
  build: Version;
  components: ComponentState[];
}

export function writeState(runDir: string, state: State): void {
  const path = join(runDir, "state.json");
  writeFileSync(`${path}.new`, `${JSON.stringify(state, undefined, 2)}\n`, { mode: 0o644 });
  renameSync(`${path}.new`, path);
}

export function removeState(runDir: string): void {
  rmSync(join(runDir, "state.json"), { force: true });
}

/** The state as it was stored, whether or not its supervisor still runs. */
export function readStoredState(runDir: string): State | undefined {
  try {
    const state = JSON.parse(readFileSync(join(runDir, "state.json"), "utf8")) as State;
    return state.version === 1 ? state : undefined;
  } catch {
    return undefined;
  }
}

/** The state of a live supervisor. */
export function readState(runDir: string): State | undefined {
  const state = readStoredState(runDir);
  return state !== undefined && isAlive(state.supervisor) ? state : undefined;
}
