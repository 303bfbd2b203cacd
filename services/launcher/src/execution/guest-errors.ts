/** Decides which error answers of a guest are trusted, because it may be hostile. Pure. */
import { ServiceError } from "@svc/contracts";
import { NOT_BEGUN } from "@svc/worker/runner/outcome";

/**
 * A guest may say why its run failed, but nothing about the launcher. It may not claim that the launcher is busy or is stopping: a worker would
 * ask other runners instead, and stop asking this one.
 */
export function ofGuest(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  const { code, status } = error;
  if (!NOT_BEGUN.has(code) && status >= 400 && status < 600) return error;
  return new ServiceError("sandbox_execution_failed", undefined, { cause: error });
}

/** A reply that is not a runner's answer counts as the guest's failure. */
export function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  return new ServiceError("sandbox_execution_failed", undefined, { cause: error });
}
