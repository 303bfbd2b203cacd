/**
 * Classifies the faults of a run for the retry policy. `away`: the program did not start, because a component was unreachable
 * or could not prepare it; it is repeated for a while. `busy`: no runner had a slot for it, which it waits for. `absent`: every runner
 * starts, stops or cannot be reached, as while it is restarted; it waits for one as for a slot. `broken`: the program may have run; it is repeated once. Every other fault is final, also an internal error that a component reports of itself: the same input would cause it again. Pure.
 */
import { ERRORS, type ErrorCode, ServiceError } from "@svc/contracts";

export type Fault = "away" | "busy" | "absent" | "broken" | "final";

const ABSENT: ReadonlySet<ErrorCode> = new Set(["starting_up", "shutting_down"]);
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
/** Other statuses come from something between us and the component, whose answers have no code of ours. */
const OWN_STATUS = ERRORS.internal_error.status;
/** Failures of a connection that was never made: nothing was sent over it. */
const NOT_CONNECTED: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOENT", "UND_ERR_CONNECT_TIMEOUT"]);
/** Calls that come before the first byte. */
const BEFORE_SENDING: ReadonlySet<unknown> = new Set(["connect", "getaddrinfo"]);

export function faultOf(error: unknown): Fault {
  if (!(error instanceof ServiceError)) return "broken";
  if (error.code === "runner_busy") return "busy";
  if (ABSENT.has(error.code)) return "absent";
  if (AWAY.has(error.code)) return "away";
  if (!BROKEN.has(error.code) || isOwnFailure(error)) return "final";
  return isNotConnected(error.cause) ? "absent" : "broken";
}

/** `cause`: of an error that tells of a call without an answer. */
export function isNotConnected(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false;
  const { code, syscall } = cause as NodeJS.ErrnoException;
  return NOT_CONNECTED.has(code) || BEFORE_SENDING.has(syscall);
}

/** A component failed at what it was given. */
export function isOwnFailure({ code, status }: ServiceError): boolean {
  return code === "internal_error" && status === OWN_STATUS;
}
