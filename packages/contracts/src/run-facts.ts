/**
 * The facts of a run for log lines, with the same names in each component: outcome, timings, limits. They hold nothing of
 * the program, its output or its files. Pure.
 */
import type { ExecutionOutcome } from "./metrics.ts";

/** `paused`: the round ended with tool calls for the caller. */
export type RunOutcome = ExecutionOutcome | "paused";

export interface RunFacts {
  outcome: RunOutcome;
  queue_ms?: number;
  setup_ms?: number;
  run_ms?: number;
  collect_ms?: number;
  /** Names of the limits. */
  limits_reached?: readonly string[];
}

/** The fields that this module reads from a runner's answer or a public answer. */
export interface RunAnswer {
  paused?: unknown;
  /** Only in a pause: run time so far, in ms. */
  execution_time?: unknown;
  status?: unknown;
  code?: unknown;
  programmatic_fault?: unknown;
  timings?: unknown;
  limits_reached?: unknown;
}

const BY_STATUS: Readonly<Record<string, ExecutionOutcome>> = {
  TO: "timeout",
  ML: "memory_limit",
  OL: "output_limit",
  EL: "output_limit",
  CE: "compile_error",
};

/** The facts of a run that has an answer. */
export function factsOfAnswer(answer: RunAnswer): RunFacts {
  const timings = Object(answer.timings) as Record<string, unknown>;
  const limits = Array.isArray(answer.limits_reached) ? answer.limits_reached : [];
  return {
    outcome: outcomeOfAnswer(answer),
    ...number(timings, "queue_ms"),
    ...number(timings, "setup_ms"),
    ...number(timings, "run_ms"),
    ...(answer.paused === true && typeof answer.execution_time === "number"
      ? { run_ms: answer.execution_time }
      : {}),
    ...number(timings, "collect_ms"),
    ...(limits.length === 0 ? {} : { limits_reached: limits.map(({ limit }) => String(limit)) }),
  };
}

function outcomeOfAnswer({ paused, status, code, programmatic_fault }: RunAnswer): RunOutcome {
  if (paused === true) return "paused";
  if (programmatic_fault !== undefined) return "program_error";
  return BY_STATUS[String(status)] ?? (code === 0 && status === null ? "success" : "program_error");
}

/** The outcome of a run, or of a request for a run, that ended with an error from the error table. */
export function outcomeOfError({ code, status }: { code: string; status: number }): ExecutionOutcome {
  if (code === "execution_cancelled") return "cancelled";
  return status < 500 ? "bad_request" : "execution_error";
}

function number<Name extends string>(from: Record<string, unknown>, name: Name) {
  const value = from[name];
  return (typeof value === "number" ? { [name]: value } : {}) as { [N in Name]?: number };
}

/** Milliseconds for the log, rounded to microseconds. */
export const shownMs = (ms: number): number => Math.round(ms * 1000) / 1000;
