/** The error for a form that violates the grammar. */
import { ServiceError } from "@svc/contracts";

export function invalidMultipart(message: string): ServiceError {
  return new ServiceError("invalid_multipart", `The multipart form is broken: ${message}.`);
}
