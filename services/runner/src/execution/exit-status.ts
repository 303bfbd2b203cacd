/**
 * How a run ended, as the interface words it: status, code, signal, message and note lines, from what the jail observed.
 * Nothing is guessed from text or from exit codes. Clients match messages word by word; notes also name the limit. Pure.
 */

import { constants } from "node:os";
import { getSystemErrorName } from "node:util";
import type { ExecutionOutcome, RunStatus } from "@svc/contracts";
import { byteSize, duration, grouped } from "@svc/contracts";
import type { RunLimits } from "../admission/limits.ts";

export type EndCause =
  | "exited"
  | "signaled"
  | "wall_limit"
  | "cpu_limit"
  | "memory_limit"
  | "stdout_limit"
  | "stderr_limit";

export interface ObservedEnd {
  cause: EndCause;
  exitCode: number;
  signal: number;
  stdoutTotal: number;
  stderrTotal: number;
  /** Why execve failed; 0 or absent: the program was executed. */
  execErrno?: number;
}

/** The limits that notes name. */
export type NotedLimits = Pick<RunLimits, "wallMs" | "cpuMs" | "memoryBytes" | "outputCap">;

export interface Ending {
  status: RunStatus | null;
  code: number;
  signal: string | null;
  message: string | null;
  notes: string[];
  outcome: ExecutionOutcome;
}

const MESSAGES = {
  TO: "Time limit exceeded",
  ML: "Out of memory",
  OL: "stdout length exceeded",
  EL: "stderr length exceeded",
} as const;

const CPU_TIME = "CPU time limit exceeded";

const OUTCOMES = {
  TO: "timeout",
  ML: "memory_limit",
  OL: "output_limit",
  EL: "output_limit",
} as const satisfies Record<string, ExecutionOutcome>;

const KILLED_BY: Partial<Record<EndCause, keyof typeof MESSAGES>> = {
  wall_limit: "TO",
  cpu_limit: "TO",
  memory_limit: "ML",
  stdout_limit: "OL",
  stderr_limit: "EL",
};

const SIGNAL_NAMES = new Map<number, string>(
  Object.entries(constants.signals).map(([name, number]) => [number, name]),
);
// Numbers that have two names: the one that programs and manuals use most.
for (const name of ["SIGABRT", "SIGIO"] as const) SIGNAL_NAMES.set(constants.signals[name], name);

export function signalName(number: number): string {
  const name = SIGNAL_NAMES.get(number);
  if (name !== undefined) return name;
  return number >= 34 && number <= 64 ? `SIGRTMIN+${number - 34}` : `SIG${number}`;
}

/** A message with its limit and, if there is one, a remedy. */
function noteOf(status: keyof typeof MESSAGES, { cause, ...end }: ObservedEnd, limits: NotedLimits): string {
  switch (status) {
    case "TO":
      return cause === "cpu_limit"
        ? `${CPU_TIME} (${duration(limits.cpuMs)})`
        : `${MESSAGES.TO} (${duration(limits.wallMs)})`;
    case "ML":
      return `${MESSAGES.ML} (limit ${byteSize(limits.memoryBytes)})`;
    default: {
      const total = status === "OL" ? end.stdoutTotal : end.stderrTotal;
      const kept = `${byteSize(limits.outputCap)} kept of ${grouped(total)} bytes`;
      return `${MESSAGES[status]} (${kept}; write large results to a file)`;
    }
  }
}

const { EACCES, ENOENT, ENOEXEC } = constants.errno;
const NO_PROGRAM = new Map([
  [EACCES, "what it left is no file that may be executed"],
  [ENOENT, "there is no such file"],
  [ENOEXEC, "what it left is in no format of programs"],
]);

/** Only for compiled programs: an interpreter that cannot be executed is an error of the service. */
function unexecutableNote(errno: number): string {
  const why = NO_PROGRAM.get(errno) ?? getSystemErrorName(-errno);
  return `The compiler made no program that can be executed: ${why} (is the source a library?)`;
}

const KILLED = { code: 137, signal: "SIGKILL" } as const;

export function endingOf(end: ObservedEnd, limits: NotedLimits): Ending {
  const cap = limits.outputCap;
  const overflows = (["OL", "EL"] as const).filter((status) =>
    status === "OL" ? end.stdoutTotal > cap : end.stderrTotal > cap,
  );
  const killed = KILLED_BY[end.cause];
  if (killed !== undefined) {
    const message = end.cause === "cpu_limit" ? CPU_TIME : MESSAGES[killed];
    return {
      ...KILLED,
      status: killed,
      message,
      notes: [...new Set([...overflows, killed])].map((status) => noteOf(status, end, limits)),
      outcome: OUTCOMES[killed],
    };
  }
  const signal = end.cause === "signaled" ? signalName(end.signal) : null;
  const crash = signal === null ? null : `Killed by signal ${signal}`;
  const notes = overflows.map((status) => noteOf(status, end, limits));
  if (crash !== null) notes.push(crash);
  if (end.execErrno) notes.push(unexecutableNote(end.execErrno));
  const first = overflows[0];
  if (first !== undefined) {
    return {
      status: first,
      code: signal === null ? end.exitCode : 128 + end.signal,
      signal,
      message: MESSAGES[first],
      notes,
      outcome: OUTCOMES[first],
    };
  }
  if (signal !== null) {
    return { status: "SG", code: 128 + end.signal, signal, message: crash, notes, outcome: "program_error" };
  }
  return {
    status: null,
    code: end.exitCode,
    signal: null,
    message: null,
    notes,
    outcome: end.exitCode === 0 ? "success" : "program_error",
  };
}

/** How a compilation failed; undefined: it did not. */
export function compileEndingOf(end: ObservedEnd, limits: NotedLimits): Ending | undefined {
  if (end.cause === "exited" && end.exitCode === 0) return undefined;
  const base = endingOf(end, limits);
  if (base.status === "TO" || base.status === "ML") {
    return { ...base, notes: [...base.notes, "The compiler did not finish"] };
  }
  if (KILLED_BY[end.cause] !== undefined) return base;
  return compileFailure(base.code, base.notes);
}

export function compileFailure(code: number, notes: readonly string[]): Ending {
  const message = "Compilation failed";
  return {
    status: "CE",
    code,
    signal: null,
    message,
    notes: [...notes, message],
    outcome: "compile_error",
  };
}

/** The ending of a program at fault: the service ended it, or found at its end that its result cannot count. `text` says why. */
export function faultEnding(end: ObservedEnd, limits: NotedLimits, text: string): Ending {
  const byItself = end.cause === "exited" || end.cause === "signaled";
  const base = endingOf(byItself ? end : { ...end, cause: "exited", exitCode: KILLED.code }, limits);
  return {
    ...base,
    ...(byItself ? {} : KILLED),
    message: base.message ?? text,
    notes: [...base.notes, text],
    outcome: "program_error",
  };
}
