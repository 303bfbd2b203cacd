/** What a run gets and what it returns. Bytes stay bytes: callers decode paths by their own rules. */
import type { ReachedLimit } from "@svc/contracts";

export interface JailLimits {
  wallMs: number;
  /** CPU time of the whole process tree. 0: no limit. */
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
  /** The limits that the run reached, each once: for example, processes were refused or a file system was full. */
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
 * The content of the workspace after a run. Each list is sorted by the bytes of its paths. It has every input, and the first 10,000
 * entries that the program made.
 *
 * Only a whole listing (JailRun.listEverything) looks into hidden directories and reports directories and symlinks.
 */
export interface WorkspaceListing {
  files: ListedEntry[];
  /** Empty directories that are not inputs. A whole listing includes hidden ones and ones below hidden directories. */
  emptyDirectories: Buffer[];
  /** Every directory, including inputs and empty ones, with its permission bits. Empty without a whole listing. */
  directories: { path: Buffer; mode: number }[];
  /** Empty without a whole listing: symlinks are then in `omitted`, with the reason `type`. `target`: text of the link, 1 to 4095 bytes. */
  symlinks: { path: Buffer; target: Buffer }[];
  /** Indices of the input directories that still exist. */
  kept: number[];
  /** Indices of inputs that are gone, or have become something else. */
  missing: number[];
  omitted: { path: Buffer; reason: "type" | "name" }[];
  /** The time for the listing ran out: more entries are missing than `unlisted` counts. */
  timedOut: boolean;
  /** The time to compare inputs ran out: some inputs that are listed as changed may be unchanged. */
  uncompared: boolean;
  /** Number of entries that exist but are not listed. */
  unlisted: number;
}

export interface RunOutcome {
  end: RunEnd;
  stdout: Buffer;
  stderr: Buffer;
  listing: WorkspaceListing;
}

/**
 * What the processes of a program do. `running`: some task runs or is runnable. `waiting`: all tasks are blocked, some with a timeout
 * or in an unknown call. `blocked`: all tasks are blocked until something outside of the program happens.
 */
export const TASK_STATES = ["running", "waiting", "blocked"] as const;
export type TaskState = (typeof TASK_STATES)[number];

/** A paused program. `stdout` and `stderr` hold the output that was kept since the start. */
export interface RunPause {
  /** Time in which the program could run, without its pauses. */
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
 * The jail failed. `started`: whether the program may have run. The kind `gone`: the connection broke. `errno`: the error number of
 * the system call that failed, if jaild reports one.
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
