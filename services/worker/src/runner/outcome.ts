/** What a failed call tells about its runner. Pure. */
import { type ErrorCode, ServiceError } from "@svc/contracts";
import { ABSENT, isNotConnected } from "../round/error-classification.ts";
import type { Outcome } from "./pool.ts";

/** Codes that a runner answers before it begins anything. */
export const NOT_BEGUN: ReadonlySet<ErrorCode> = new Set(["runner_busy", ...ABSENT]);

/** Whether this answer means that the runner has lost the requested paused program. */
export function isProgramLost(error: unknown): boolean {
  return error instanceof ServiceError && ABSENT.has(error.code);
}

/** Whether the run certainly did not begin, so that another runner may take it. */
export function isNeverAccepted(error: unknown): error is ServiceError {
  if (!(error instanceof ServiceError)) return false;
  return NOT_BEGUN.has(error.code) || isNotConnected(error.cause);
}

/** `doubt`: the cause may be the run or the runner. */
export function outcomeOf(error: unknown): Outcome | "doubt" {
  if (!(error instanceof ServiceError)) return "doubt";
  if (error.code === "runner_busy") return "busy";
  if (ABSENT.has(error.code)) return "failed";
  if (error.cause instanceof Error) return silenceOf(error.cause);
  return error.status >= 500 ? "doubt" : "ready";
}

/** Classifies a call without an answer. A machine that refuses a connection is up: what runs on it may still answer. */
export function silenceOf(cause: unknown): "silent" | "failed" {
  const { code } = cause as NodeJS.ErrnoException;
  const isSilent = code !== "ECONNREFUSED" && (isNotConnected(cause) || code === "UND_ERR_HEADERS_TIMEOUT");
  return isSilent ? "silent" : "failed";
}
