/** A class for each error code, and whether its request may be repeated. Made by `npm run openapi`. */
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

/** The file storage cannot be reached. */
export class StorageUnavailableError extends SvcError {}

/** The state store cannot be reached. */
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

export const CODES: Readonly<Record<string, { type: typeof SvcError; repeat: "no" | "yes" | "same" }>> = {
  invalid_json: { type: InvalidJsonError, repeat: "no" },
  invalid_request: { type: InvalidRequestError, repeat: "no" },
  invalid_content_type: { type: InvalidContentTypeError, repeat: "no" },
  unsupported_language: { type: UnsupportedLanguageError, repeat: "no" },
  unsupported_version: { type: UnsupportedVersionError, repeat: "no" },
  invalid_file_reference: { type: InvalidFileReferenceError, repeat: "no" },
  reserved_file_name: { type: ReservedFileNameError, repeat: "no" },
  file_reference_denied: { type: FileReferenceDeniedError, repeat: "no" },
  invalid_id: { type: InvalidIdError, repeat: "no" },
  invalid_file_name: { type: InvalidFileNameError, repeat: "no" },
  no_files: { type: NoFilesError, repeat: "no" },
  too_many_files: { type: TooManyFilesError, repeat: "no" },
  invalid_multipart: { type: InvalidMultipartError, repeat: "no" },
  file_too_large: { type: FileTooLargeError, repeat: "no" },
  request_too_large: { type: RequestTooLargeError, repeat: "no" },
  quota_exceeded: { type: QuotaExceededError, repeat: "no" },
  upload_timeout: { type: UploadTimeoutError, repeat: "yes" },
  upload_failed: { type: UploadFailedError, repeat: "yes" },
  unauthorized: { type: UnauthorizedError, repeat: "no" },
  origin_not_allowed: { type: OriginNotAllowedError, repeat: "no" },
  forbidden: { type: ForbiddenError, repeat: "no" },
  rate_limited: { type: RateLimitedError, repeat: "yes" },
  not_found: { type: NotFoundError, repeat: "no" },
  method_not_allowed: { type: MethodNotAllowedError, repeat: "no" },
  file_not_found: { type: FileNotFoundError, repeat: "no" },
  range_not_satisfiable: { type: RangeNotSatisfiableError, repeat: "no" },
  execution_profile_mismatch: { type: ExecutionProfileMismatchError, repeat: "no" },
  stateful_workspace_unsupported: { type: StatefulWorkspaceUnsupportedError, repeat: "no" },
  idempotency_key_reused: { type: IdempotencyKeyReusedError, repeat: "no" },
  invalid_continuation_token: { type: InvalidContinuationTokenError, repeat: "no" },
  execution_expired: { type: ExecutionExpiredError, repeat: "no" },
  invalid_tool_results: { type: InvalidToolResultsError, repeat: "no" },
  tool_result_too_large: { type: ToolResultTooLargeError, repeat: "no" },
  tool_history_too_large: { type: ToolHistoryTooLargeError, repeat: "no" },
  state_too_large: { type: StateTooLargeError, repeat: "no" },
  continuation_conflict: { type: ContinuationConflictError, repeat: "no" },
  job_not_found: { type: JobNotFoundError, repeat: "no" },
  execution_cancelled: { type: ExecutionCancelledError, repeat: "no" },
  input_unavailable: { type: InputUnavailableError, repeat: "yes" },
  storage_unavailable: { type: StorageUnavailableError, repeat: "yes" },
  store_unavailable: { type: StoreUnavailableError, repeat: "yes" },
  queue_saturated: { type: QueueSaturatedError, repeat: "same" },
  starting_up: { type: StartingUpError, repeat: "yes" },
  shutting_down: { type: ShuttingDownError, repeat: "yes" },
  sandbox_setup_failed: { type: SandboxSetupFailedError, repeat: "same" },
  permission_denied: { type: PermissionDeniedError, repeat: "same" },
  sandbox_execution_failed: { type: SandboxExecutionFailedError, repeat: "yes" },
  execution_timeout: { type: ExecutionTimeoutError, repeat: "yes" },
  manifest_key_missing: { type: ManifestKeyMissingError, repeat: "no" },
  manifest_refused: { type: ManifestRefusedError, repeat: "no" },
  upstream_unavailable: { type: UpstreamUnavailableError, repeat: "yes" },
  upstream_timeout: { type: UpstreamTimeoutError, repeat: "yes" },
  internal_error: { type: InternalError, repeat: "yes" },
};
