/** The refusal of a form that breaks the grammar. */
import { ServiceError } from "@svc/contracts";

export function invalidMultipart(message: string): ServiceError {
  return new ServiceError("invalid_multipart", `The multipart form is broken: ${message}.`);
}
