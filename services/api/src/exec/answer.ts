/** Turns the result of a job into its answer, or throws the error that the client sees. Pure. */
import { type JobResult, ServiceError } from "@svc/contracts";
import { knownErrorCode } from "@svc/service-kit";

export function answerOf(result: JobResult): Record<string, unknown> {
  if (result.ok) return result.answer;
  const { code, status, message, details } = result.error;
  throw new ServiceError(knownErrorCode(code), message, {
    status,
    ...(details === undefined ? {} : { details }),
  });
}
