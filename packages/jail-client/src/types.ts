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
  path: Buffer;
}

export interface WorkspaceListing {
  files: ListedEntry[];
  emptyDirectories: Buffer[];
  kept: number[];
  missing: number[];
  omitted: { path: Buffer; reason: "type" | "name" }[];
  truncated: boolean;
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
