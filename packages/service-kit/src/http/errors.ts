/** Turns everything that a route throws into an answer from the error table, and logs what the client must not see. */
import {
  ERRORS,
  type ErrorCode,
  errorBody,
  fieldPath,
  type Problem,
  problemsOf,
  ServiceError,
} from "@svc/contracts";
import type { FastifyReply, FastifyRequest } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import type { z } from "zod";
import { loggedError } from "../logged-error.ts";
import { wrongContentType } from "./content-type.ts";
import { discardBody } from "./discard.ts";
import { noteFailure } from "./request-log.ts";

const REQUEST_TIMEOUT = 408;
const UNAVAILABLE = 503;
/** Expected answers while a component starts, stops or has no free slot. They are not logged at error level. */
const NO_FAULT: ReadonlySet<ErrorCode> = new Set(["starting_up", "shutting_down", "runner_busy"]);
/** Overload, logged as a warning: nothing is broken, but the operator may want to add capacity. */
const OVERLOAD: ErrorCode = "queue_saturated";
/** The default Retry-After of a 503. */
export const RETRY_AFTER = { "retry-after": "2" } as const;

/** With `request`, the error for a wrong media type names that type. */
export function toServiceError(error: unknown, request?: FastifyRequest): ServiceError {
  if (error instanceof ServiceError) return error;
  if (hasZodFastifySchemaValidationErrors(error)) {
    const details = error.validation.map((issue) => {
      const path = issue.instancePath.split("/").slice(1);
      return { path: fieldPath(path), problem: issue.message ?? "is not valid" };
    });
    return invalidRequest(details);
  }
  const code = (error as { code?: unknown } | null)?.code;
  switch (code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new ServiceError("request_too_large");
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return request === undefined
        ? new ServiceError("invalid_content_type")
        : wrongContentType("application/json", request.headers["content-type"]);
    case "FST_ERR_CTP_EMPTY_JSON_BODY":
    case "FST_ERR_CTP_INVALID_JSON_BODY":
      return new ServiceError("invalid_json");
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return new ServiceError("invalid_request", "The Content-Length does not fit the body.");
    case "FST_ERR_BAD_URL":
    case "FST_ERR_MAX_PARAM_LENGTH":
      return new ServiceError("not_found");
    default:
      break;
  }
  if (error instanceof SyntaxError && (error as { statusCode?: number }).statusCode === 400) {
    return new ServiceError("invalid_json");
  }
  return new ServiceError("internal_error", undefined, { cause: error });
}

/** `invalid_request` whose message names the first problem; `invalid_json` when the body as a whole is not an object. */
export function invalidRequest(details: Problem[]): ServiceError {
  const first = details[0];
  if (first === undefined) return new ServiceError("invalid_request");
  if (first.path === "") return new ServiceError("invalid_json");
  return new ServiceError("invalid_request", `${first.path}: ${first.problem}.`, { details });
}

/** Parses with a schema or throws `invalid_request` with one detail per wrong field. */
export function parseOrRefuse<T extends z.ZodType>(schema: T, value: unknown): z.infer<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw invalidRequest(problemsOf(result.error));
}

/** Records the error of a request, for the log and for the request metrics. */
export function noteError(request: FastifyRequest, error: ServiceError): void {
  noteFailure(request, error);
  const line = {
    request_id: request.id,
    code: error.code,
    status: error.status,
    err: loggedError(error.cause),
  };
  const { message } = ERRORS[error.code];
  request.log[levelOf(error)](line, message);
}

function levelOf({ status, code }: ServiceError): "error" | "warn" | "debug" {
  if (status < 500 || NO_FAULT.has(code)) return "debug";
  return code === OVERLOAD ? "warn" : "error";
}

export async function sendError(
  request: FastifyRequest,
  reply: FastifyReply,
  error: ServiceError,
): Promise<void> {
  noteError(request, error);
  if (reply.raw.headersSent) {
    reply.raw.destroy();
    return;
  }
  reply.header("x-request-id", request.id);
  if (error.status === UNAVAILABLE) reply.headers(RETRY_AFTER);
  for (const [name, value] of Object.entries(error.headers ?? {})) reply.header(name, value);
  if (!request.raw.complete) {
    // Do not wait a second time for a client that was too slow.
    if (error.status !== REQUEST_TIMEOUT) await discardBody(request.raw);
    reply.header("connection", "close");
  }
  await reply
    .code(error.status)
    .header("content-type", "application/json; charset=utf-8")
    .send(JSON.stringify(errorBody(error, request.id)));
}
