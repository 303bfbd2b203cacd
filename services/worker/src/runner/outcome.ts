/** What a failed call says of the runner that it went to. Pure. */
import { type ErrorCode, ServiceError } from "@svc/contracts";
import { isNotConnected } from "../round/error-classification.ts";
import type { Outcome } from "./pool.ts";

/** Codes that a runner answers before it has begun anything. */
export const NOT_BEGUN: ReadonlySet<ErrorCode> = new Set(["runner_busy", "starting_up", "shutting_down"]);

/** A runner that starts has no paused program yet, and one that ends gives them all up. */
const KEEPS_NONE: ReadonlySet<ErrorCode> = new Set(["starting_up", "shutting_down"]);

/** A runner that answers so has lost the paused program that it was asked for. */
export function isProgramLost(error: unknown): boolean {
  return error instanceof ServiceError && KEEPS_NONE.has(error.code);
}

/** The run was certainly not begun: another runner may have it. */
export function isNeverAccepted(error: unknown): error is ServiceError {
  if (!(error instanceof ServiceError)) return false;
  return NOT_BEGUN.has(error.code) || isNotConnected(error.cause);
}

/** `doubt`: it may be the run's fault, or the runner's. */
export function outcomeOf(error: unknown): Outcome | "doubt" {
  if (!(error instanceof ServiceError)) return "doubt";
  if (error.code === "runner_busy") return "busy";
  if (KEEPS_NONE.has(error.code)) return "failed";
  if (error.cause instanceof Error) return silenceOf(error.cause);
  return error.status >= 500 ? "doubt" : "served";
}

/** Of a call without an answer. A machine that refuses a connection is there: what runs on it may still answer. */
export function silenceOf(cause: unknown): "silent" | "failed" {
  const { code } = cause as NodeJS.ErrnoException;
  const isSilent = code !== "ECONNREFUSED" && (isNotConnected(cause) || code === "UND_ERR_HEADERS_TIMEOUT");
  return isSilent ? "silent" : "failed";
}
