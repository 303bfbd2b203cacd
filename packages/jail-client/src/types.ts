import type { ReachedLimit } from "@svc/contracts";

/** What a run is given and what comes back. Bytes stay bytes: paths are decoded by the caller's rules. */
export interface JailLimits {
  wallMs: number;
  /** CPU time of the whole tree; 0: none. */
  cpuMs: number;
  memoryBytes: number;
  processes: number;
  openFiles: number;
  fileBytes: number;
  stdoutCap: number;
  stderrCap: number;
  killFactor: number;
}

export const END_CAUSES = [
  "exited",
  "signaled",
  "wall_limit",
  "cpu_limit",
  "memory_limit",
  "stdout_limit",
  "stderr_limit",
] as const;
export type EndCause = (typeof END_CAUSES)[number];

export interface RunEnd {
  cause: EndCause;
  exitCode: number;
  signal: number;
  /** Not 0: the program could not be executed. */
  execErrno: number;
  wallUs: number;
  cpuUs: number;
  memoryPeak: number;
  stdoutTotal: number;
  stderrTotal: number;
  oomKills: number;
  /** Each limit once: processes were refused, a file system was full. */
  reached: ReachedLimit[];
}

export interface ListedEntry {
  number: number;
  state: "new" | "changed" | "unchanged";
  input?: number;
  size: number;
  /** Permission bits, at most 0o777. */
  mode: number;
  path: Buffer;
}

/**
 * What lies in the workspace after a run, each list sorted by the bytes of its paths. Every input is listed, and of what
 * the program made at most 10,000 entries, the first ones.
 *
 * Only a whole listing (JailRun.listEverything) looks into hidden directories and tells directories and symlinks.
 */
export interface WorkspaceListing {
  files: ListedEntry[];
  /** Empty directories that are no inputs. In a whole listing hidden ones and ones below hidden directories are among them. */
  emptyDirectories: Buffer[];
  /** Every directory, inputs and empty ones too, with its permission bits; none without a whole listing. */
  directories: { path: Buffer; mode: number }[];
  /** None without a whole listing: they are then in `omitted`, by type. `target` is what the link says, 1 to 4095 bytes. */
  symlinks: { path: Buffer; target: Buffer }[];
  /** Indices of the directories among the inputs that are still there. */
  kept: number[];
  /** Indices of inputs that are gone, or have become something else. */
  missing: number[];
  omitted: { path: Buffer; reason: "type" | "name" }[];
  /** Not all could be looked at in time: more entries are missing than are counted. */
  timedOut: boolean;
  /** Inputs could not be compared in time: some that are listed as changed may be what they were. */
  uncompared: boolean;
  /** Entries that are there and not listed. */
  unlisted: number;
}

export interface RunOutcome {
  end: RunEnd;
  stdout: Buffer;
  stderr: Buffer;
  listing: WorkspaceListing;
}

/**
 * What the processes of a program do. `running`: some task runs or could. `waiting`: all are blocked, some for a limited
 * time or in a way that is not known. `blocked`: all are blocked until something outside of the program happens.
 */
export const TASK_STATES = ["running", "waiting", "blocked"] as const;
export type TaskState = (typeof TASK_STATES)[number];

/** A program that stands still. Its streams hold what was kept since the start. */
export interface RunPause {
  /** Time in which the program could run; no pause counts. */
  wallUs: number;
  cpuUs: number;
  memory: number;
  stdoutTotal: number;
  stderrTotal: number;
  stdout: Buffer;
  stderr: Buffer;
}

const ERROR_KINDS = ["protocol", "setup", "inputs_do_not_fit", "internal"] as const;
export type JailErrorKind = (typeof ERROR_KINDS)[number] | "gone";

/**
 * The jail failed. `started`: whether the program may have run. `gone`: the connection broke. `errno`: of the call that failed,
 * where jaild tells one.
 */
export class JailError extends Error {
  readonly kind: JailErrorKind;
  readonly started: boolean;
  readonly errno: number | undefined;

  constructor(kind: JailErrorKind, started: boolean, message: string, errno?: number) {
    super(message);
    this.name = "JailError";
    this.kind = kind;
    this.started = started;
    this.errno = errno;
  }
}

export function errorKind(code: number): JailErrorKind {
  return ERROR_KINDS[code - 1] ?? "internal";
}
