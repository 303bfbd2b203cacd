/**
 * Classifies the faults of a run for the retry policy. `away`: the program did not start, because a component was unreachable or could
 * not prepare it; retried for a while. `busy`: no runner had a free slot; the run waits for one. `absent`: every runner starts, stops or
 * cannot be reached, as during a restart; the run waits as for a slot. `broken`: the program may have run; it is repeated once. Every
 * other fault is final, also an internal error that a component reports about itself: the same input would cause it again. Pure.
 */
import { ERRORS, type ErrorCode, ServiceError } from "@svc/contracts";

export type Fault = "away" | "busy" | "absent" | "broken" | "final";

/** Codes of a runner that starts or stops. It holds no paused program: a starting one has none yet, a stopping one discards them all. */
export const ABSENT: ReadonlySet<ErrorCode> = new Set(["starting_up", "shutting_down"]);
const AWAY: ReadonlySet<ErrorCode> = new Set([
  "store_unavailable",
  "storage_unavailable",
  "upstream_unavailable",
  "upstream_timeout",
  "ledger_conflict",
  "sandbox_setup_failed",
  "permission_denied",
]);
const BROKEN: ReadonlySet<ErrorCode> = new Set(["sandbox_execution_failed", "internal_error"]);
/** Other statuses come from an intermediary, whose answers carry none of our codes. */
const OWN_STATUS = ERRORS.internal_error.status;
/** Errors of connections that were never established: nothing was sent over them. */
const NOT_CONNECTED: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOENT", "UND_ERR_CONNECT_TIMEOUT"]);
/** System calls that come before the first byte is sent. */
const BEFORE_SENDING: ReadonlySet<unknown> = new Set(["connect", "getaddrinfo"]);

export function faultOf(error: unknown): Fault {
  if (!(error instanceof ServiceError)) return "broken";
  if (error.code === "runner_busy") return "busy";
  if (ABSENT.has(error.code)) return "absent";
  if (AWAY.has(error.code)) return "away";
  if (!BROKEN.has(error.code) || isOwnFailure(error)) return "final";
  return isNotConnected(error.cause) ? "absent" : "broken";
}

/** `cause`: the cause of an error that reports a call without an answer. */
export function isNotConnected(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false;
  const { code, syscall } = cause as NodeJS.ErrnoException;
  return NOT_CONNECTED.has(code) || BEFORE_SENDING.has(syscall);
}

/** Whether a component reports an internal error of its own. */
export function isOwnFailure({ code, status }: ServiceError): boolean {
  return code === "internal_error" && status === OWN_STATUS;
}
