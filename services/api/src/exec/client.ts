/** How clients of the exec routes read answers, and how the API notices that they disconnect. */
import { ServiceError } from "@svc/contracts";
import { clientGone, type FastifyReply } from "@svc/service-kit";

/** Clients of these routes read 413 as "try again", so a body that is too large gets 422. */
export function permanentRefusal(error: ServiceError): ServiceError {
  return error.code === "request_too_large"
    ? new ServiceError(error.code, error.message, {
        status: 422,
        ...(error.details === undefined ? {} : { details: error.details }),
      })
    : error;
}

/** Aborted when the connection closes before the answer is written. */
export function clientLeft(reply: FastifyReply): AbortSignal {
  return clientGone(reply, new ServiceError("execution_cancelled"));
}
