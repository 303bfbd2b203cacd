/**
 * Which faults of a run are worth another try. `away`: the program did not start, because something was away or could not
 * prepare it; it may be tried again and again. `broken`: the program may have run; it is made once more. Every other
 * fault is an answer. Pure.
 */
import { type ErrorCode, ServiceError } from "@svc/contracts";

export type Fault = "away" | "broken" | "final";

const AWAY: ReadonlySet<ErrorCode> = new Set([
  "runner_busy",
  "starting_up",
  "shutting_down",
  "store_unavailable",
  "storage_unavailable",
  "upstream_unavailable",
  "upstream_timeout",
  "ledger_conflict",
  "sandbox_setup_failed",
  "permission_denied",
  "workspace_missing",
  "mount_failed",
]);
const BROKEN: ReadonlySet<ErrorCode> = new Set(["sandbox_execution_failed", "internal_error"]);
/** Failures of a connection that was never made: nothing was sent over it. */
const NOT_CONNECTED: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOENT", "UND_ERR_CONNECT_TIMEOUT"]);

export function faultOf(error: unknown): Fault {
  if (!(error instanceof ServiceError)) return "broken";
  if (AWAY.has(error.code)) return "away";
  if (!BROKEN.has(error.code)) return "final";
  return NOT_CONNECTED.has((error.cause as NodeJS.ErrnoException | undefined)?.code) ? "away" : "broken";
}
