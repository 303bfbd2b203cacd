/**
 * Turns an internal error into the one that the client sees. Faults of inner components become what they mean for a caller. What they say
 * about files is kept, with the caller's own words and indices. Pure.
 */
import { type ErrorCode, errorBody, type JobResult, type Problem, ServiceError } from "@svc/contracts";
import { isOwnFailure } from "./error-classification.ts";

type Failure = Extract<JobResult, { ok: false }>;

/** Codes that mean the same to a caller as to us. */
const SHOWN: ReadonlySet<ErrorCode> = new Set([
  "invalid_request",
  "invalid_file_reference",
  "too_many_files",
  "unsupported_language",
  "unsupported_version",
  "request_too_large",
  "input_unavailable",
  "execution_not_found",
  "execution_expired",
  "queue_saturated",
  "storage_unavailable",
  "store_unavailable",
  "sandbox_setup_failed",
  "permission_denied",
]);

/** Other codes describe our components. A code without a row here means a broken run. */
const MEANING: Partial<Record<ErrorCode, ErrorCode>> = {
  deadline_exceeded: "execution_timeout",
  runner_busy: "queue_saturated",
  starting_up: "sandbox_setup_failed",
  shutting_down: "sandbox_setup_failed",
  upstream_unavailable: "sandbox_setup_failed",
  upstream_timeout: "sandbox_setup_failed",
  ledger_conflict: "sandbox_setup_failed",
  manifest_missing: "sandbox_setup_failed",
  manifest_malformed: "sandbox_setup_failed",
  manifest_key_missing: "sandbox_setup_failed",
  manifest_refused: "sandbox_setup_failed",
};

export function failureOf(error: unknown, cancelled: AbortSignal, isLate: boolean): Failure {
  return asResult(meaning(error, cancelled, isLate));
}

function meaning(error: unknown, cancelled: AbortSignal, isLate: boolean): ServiceError {
  if (cancelled.aborted && cancelled.reason instanceof ServiceError) return cancelled.reason;
  if (isLate) return new ServiceError("execution_timeout");
  if (!(error instanceof ServiceError)) return new ServiceError("sandbox_execution_failed");
  if (isOwnFailure(error)) return new ServiceError("internal_error");
  if (!SHOWN.has(error.code)) return new ServiceError(MEANING[error.code] ?? "sandbox_execution_failed");
  return error.details === undefined ? error : inCallersWords(error, error.details);
}

/** The runner's request begins with the program's code, so its `files[1]` is the caller's `files[0]`. */
function inCallersWords(error: ServiceError, given: readonly Problem[]): ServiceError {
  const details = given.map(({ path, problem }) => ({
    path: path
      .replace(/^files\[0\].*/, "code")
      .replace(/^files\[(\d+)\]/, (_, at: string) => `files[${Number(at) - 1}]`),
    problem,
  }));
  const first = details[0];
  const message = first === undefined ? undefined : `${first.path}: ${first.problem}.`;
  return new ServiceError(error.code, message, { status: error.status, details });
}

function asResult(error: ServiceError): Failure {
  const { message, details } = errorBody(error, "") as { message: string; details?: Problem[] };
  const { code, status } = error;
  return { ok: false, error: { code, status, message, ...(details === undefined ? {} : { details }) } };
}
