/** What is believed of the errors that a guest answers: it may be hostile. Pure. */
import { ServiceError } from "@svc/contracts";
import { NOT_BEGUN } from "@svc/worker/runner/outcome";

/**
 * A guest may say of its run why it failed, and nothing of the launcher: not that it is busy or ends, for which a worker would ask others, and
 * ask this one no more.
 */
export function ofGuest(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  const { code, status } = error;
  if (!NOT_BEGUN.has(code) && status >= 400 && status < 600) return error;
  return new ServiceError("sandbox_execution_failed", undefined, { cause: error });
}

/** What a guest says that is no answer of a runner is the guest's failure. */
export function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  return new ServiceError("sandbox_execution_failed", undefined, { cause: error });
}
