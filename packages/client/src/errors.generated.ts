/** A class for each error code, its usual status, and whether its request may be repeated. Made by `npm run openapi`. */
import { SvcError } from "./error.ts";

/** The request body is not a JSON object. */
export class InvalidJsonError extends SvcError {}

/** The request is not valid. */
export class InvalidRequestError extends SvcError {}

/** The Content-Type of the request is not accepted here. */
export class InvalidContentTypeError extends SvcError {}

/** The language is not supported. */
export class UnsupportedLanguageError extends SvcError {}

/** No installed version of the language fits. */
export class UnsupportedVersionError extends SvcError {}

/** A file reference is not valid. */
export class InvalidFileReferenceError extends SvcError {}

/** The file name belongs to the service. */
export class ReservedFileNameError extends SvcError {}

/** A referenced file is not available to the caller. */
export class FileReferenceDeniedError extends SvcError {}

/** An id must have exactly 21 characters of A-Z, a-z, 0-9, _ and -. */
export class InvalidIdError extends SvcError {}

/** The file name is not valid. */
export class InvalidFileNameError extends SvcError {}

/** The form holds no file. */
export class NoFilesError extends SvcError {}

/** The request holds too many files. */
export class TooManyFilesError extends SvcError {}

/** The multipart form is broken. */
export class InvalidMultipartError extends SvcError {}

/** The file is larger than allowed. */
export class FileTooLargeError extends SvcError {}

/** The request body is larger than allowed. */
export class RequestTooLargeError extends SvcError {}

/** There is no room for more files of the caller. */
export class QuotaExceededError extends SvcError {}

/** The upload did not arrive in time. */
export class UploadTimeoutError extends SvcError {}

/** No file could be stored. */
export class UploadFailedError extends SvcError {}

/** Valid credentials are required. */
export class UnauthorizedError extends SvcError {}

/** Requests from other hosts and web pages are not served. */
export class OriginNotAllowedError extends SvcError {}

/** The caller may not do this. */
export class ForbiddenError extends SvcError {}

/** Too many requests. */
export class RateLimitedError extends SvcError {}

/** There is no such route. */
export class NotFoundError extends SvcError {}

/** The route does not offer this method. */
export class MethodNotAllowedError extends SvcError {}

/** The file does not exist. */
export class FileNotFoundError extends SvcError {}

/** The range starts after the end of the file. */
export class RangeNotSatisfiableError extends SvcError {}

/** The requested execution profile is not offered here. */
export class ExecutionProfileMismatchError extends SvcError {}

/** Attached workspaces are not offered. */
export class StatefulWorkspaceUnsupportedError extends SvcError {}

/** The Idempotency-Key was used with another request body. */
export class IdempotencyKeyReusedError extends SvcError {}

/** The continuation token is not valid. */
export class InvalidContinuationTokenError extends SvcError {}

/** The execution is over. */
export class ExecutionExpiredError extends SvcError {}

/** The tool results are not valid. */
export class InvalidToolResultsError extends SvcError {}

/** A tool result is larger than allowed. */
export class ToolResultTooLargeError extends SvcError {}

/** All tool results together are larger than allowed. */
export class ToolHistoryTooLargeError extends SvcError {}

/** The stored state is larger than allowed. */
export class StateTooLargeError extends SvcError {}

/** The continuation token was used with other results. */
export class ContinuationConflictError extends SvcError {}

/** The job does not exist. */
export class JobNotFoundError extends SvcError {}

/** The execution was cancelled. */
export class ExecutionCancelledError extends SvcError {}

/** An input file is missing or damaged. */
export class InputUnavailableError extends SvcError {}

/** The file storage is away or full. */
export class StorageUnavailableError extends SvcError {}

/** The state store is away or full. */
export class StoreUnavailableError extends SvcError {}

/** The execution could not start in time and was removed; it is safe to repeat it. */
export class QueueSaturatedError extends SvcError {}

/** The service is starting. */
export class StartingUpError extends SvcError {}

/** The service is shutting down. */
export class ShuttingDownError extends SvcError {}

/** The sandbox could not be prepared; the program did not start. */
export class SandboxSetupFailedError extends SvcError {}

/** The sandbox lacks a permission; the program did not start. */
export class PermissionDeniedError extends SvcError {}

/** The sandbox broke while the program was running. */
export class SandboxExecutionFailedError extends SvcError {}

/** The execution took too long and was stopped. */
export class ExecutionTimeoutError extends SvcError {}

/** No key to verify execution manifests is configured. */
export class ManifestKeyMissingError extends SvcError {}

/** The execution manifest was refused. */
export class ManifestRefusedError extends SvcError {}

/** An inner service failed. */
export class UpstreamUnavailableError extends SvcError {}

/** An inner service did not answer in time. */
export class UpstreamTimeoutError extends SvcError {}

/** Something went wrong inside the service. */
export class InternalError extends SvcError {}

export const CODES: Readonly<
  Record<string, { type: typeof SvcError; status: number; repeat: "no" | "yes" | "same" }>
> = {
  invalid_json: { type: InvalidJsonError, status: 400, repeat: "no" },
  invalid_request: { type: InvalidRequestError, status: 400, repeat: "no" },
  invalid_content_type: { type: InvalidContentTypeError, status: 400, repeat: "no" },
  unsupported_language: { type: UnsupportedLanguageError, status: 400, repeat: "no" },
  unsupported_version: { type: UnsupportedVersionError, status: 400, repeat: "no" },
  invalid_file_reference: { type: InvalidFileReferenceError, status: 400, repeat: "no" },
  reserved_file_name: { type: ReservedFileNameError, status: 400, repeat: "no" },
  file_reference_denied: { type: FileReferenceDeniedError, status: 403, repeat: "no" },
  invalid_id: { type: InvalidIdError, status: 400, repeat: "no" },
  invalid_file_name: { type: InvalidFileNameError, status: 400, repeat: "no" },
  no_files: { type: NoFilesError, status: 400, repeat: "no" },
  too_many_files: { type: TooManyFilesError, status: 400, repeat: "no" },
  invalid_multipart: { type: InvalidMultipartError, status: 400, repeat: "no" },
  file_too_large: { type: FileTooLargeError, status: 413, repeat: "no" },
  request_too_large: { type: RequestTooLargeError, status: 413, repeat: "no" },
  quota_exceeded: { type: QuotaExceededError, status: 413, repeat: "no" },
  upload_timeout: { type: UploadTimeoutError, status: 408, repeat: "yes" },
  upload_failed: { type: UploadFailedError, status: 502, repeat: "yes" },
  unauthorized: { type: UnauthorizedError, status: 401, repeat: "no" },
  origin_not_allowed: { type: OriginNotAllowedError, status: 403, repeat: "no" },
  forbidden: { type: ForbiddenError, status: 403, repeat: "no" },
  rate_limited: { type: RateLimitedError, status: 429, repeat: "yes" },
  not_found: { type: NotFoundError, status: 404, repeat: "no" },
  method_not_allowed: { type: MethodNotAllowedError, status: 405, repeat: "no" },
  file_not_found: { type: FileNotFoundError, status: 404, repeat: "no" },
  range_not_satisfiable: { type: RangeNotSatisfiableError, status: 416, repeat: "no" },
  execution_profile_mismatch: { type: ExecutionProfileMismatchError, status: 422, repeat: "no" },
  stateful_workspace_unsupported: { type: StatefulWorkspaceUnsupportedError, status: 422, repeat: "no" },
  idempotency_key_reused: { type: IdempotencyKeyReusedError, status: 422, repeat: "no" },
  invalid_continuation_token: { type: InvalidContinuationTokenError, status: 400, repeat: "no" },
  execution_expired: { type: ExecutionExpiredError, status: 400, repeat: "no" },
  invalid_tool_results: { type: InvalidToolResultsError, status: 400, repeat: "no" },
  tool_result_too_large: { type: ToolResultTooLargeError, status: 422, repeat: "no" },
  tool_history_too_large: { type: ToolHistoryTooLargeError, status: 422, repeat: "no" },
  state_too_large: { type: StateTooLargeError, status: 422, repeat: "no" },
  continuation_conflict: { type: ContinuationConflictError, status: 409, repeat: "no" },
  job_not_found: { type: JobNotFoundError, status: 404, repeat: "no" },
  execution_cancelled: { type: ExecutionCancelledError, status: 409, repeat: "no" },
  input_unavailable: { type: InputUnavailableError, status: 502, repeat: "no" },
  storage_unavailable: { type: StorageUnavailableError, status: 503, repeat: "yes" },
  store_unavailable: { type: StoreUnavailableError, status: 503, repeat: "yes" },
  queue_saturated: { type: QueueSaturatedError, status: 503, repeat: "same" },
  starting_up: { type: StartingUpError, status: 503, repeat: "yes" },
  shutting_down: { type: ShuttingDownError, status: 503, repeat: "yes" },
  sandbox_setup_failed: { type: SandboxSetupFailedError, status: 503, repeat: "same" },
  permission_denied: { type: PermissionDeniedError, status: 503, repeat: "same" },
  sandbox_execution_failed: { type: SandboxExecutionFailedError, status: 502, repeat: "yes" },
  execution_timeout: { type: ExecutionTimeoutError, status: 504, repeat: "yes" },
  manifest_key_missing: { type: ManifestKeyMissingError, status: 500, repeat: "no" },
  manifest_refused: { type: ManifestRefusedError, status: 403, repeat: "no" },
  upstream_unavailable: { type: UpstreamUnavailableError, status: 502, repeat: "yes" },
  upstream_timeout: { type: UpstreamTimeoutError, status: 504, repeat: "yes" },
  internal_error: { type: InternalError, status: 500, repeat: "yes" },
};
