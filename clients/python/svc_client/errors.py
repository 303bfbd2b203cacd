"""
One class for each error code of the service, by what `error` is in an error body.

Made by `npm run docs` from `packages/contracts/src/errors.ts` and `error-advice.ts`; not edited by hand.
"""

from typing import Dict, Type

from ._base import ConnectionFailed, InvalidAnswer, Problem, RequestTimeout, SvcError


class InvalidJson(SvcError):
    """The request body is not a JSON object."""

    code = "invalid_json"
    repeat = "no"
    usual_status = 400


class InvalidRequest(SvcError):
    """The request is not valid."""

    code = "invalid_request"
    repeat = "no"
    usual_status = 400


class InvalidContentType(SvcError):
    """The Content-Type of the request is not accepted here."""

    code = "invalid_content_type"
    repeat = "no"
    usual_status = 400


class UnsupportedLanguage(SvcError):
    """The language is not supported."""

    code = "unsupported_language"
    repeat = "no"
    usual_status = 400


class UnsupportedVersion(SvcError):
    """No installed version of the language fits."""

    code = "unsupported_version"
    repeat = "no"
    usual_status = 400


class InvalidFileReference(SvcError):
    """A file reference is not valid."""

    code = "invalid_file_reference"
    repeat = "no"
    usual_status = 400


class ReservedFileName(SvcError):
    """The file name belongs to the service."""

    code = "reserved_file_name"
    repeat = "no"
    usual_status = 400


class FileReferenceDenied(SvcError):
    """A referenced file is not available to the caller."""

    code = "file_reference_denied"
    repeat = "no"
    usual_status = 403


class InvalidId(SvcError):
    """An id must have exactly 21 characters of A-Z, a-z, 0-9, _ and -."""

    code = "invalid_id"
    repeat = "no"
    usual_status = 400


class InvalidFileName(SvcError):
    """The file name is not valid."""

    code = "invalid_file_name"
    repeat = "no"
    usual_status = 400


class NoFiles(SvcError):
    """The form holds no file."""

    code = "no_files"
    repeat = "no"
    usual_status = 400


class TooManyFiles(SvcError):
    """The request holds too many files."""

    code = "too_many_files"
    repeat = "no"
    usual_status = 400


class InvalidMultipart(SvcError):
    """The multipart form is broken."""

    code = "invalid_multipart"
    repeat = "no"
    usual_status = 400


class FileTooLarge(SvcError):
    """The file is larger than allowed."""

    code = "file_too_large"
    repeat = "no"
    usual_status = 413


class RequestTooLarge(SvcError):
    """The request body is larger than allowed."""

    code = "request_too_large"
    repeat = "no"
    usual_status = 413


class QuotaExceeded(SvcError):
    """There is no room for more files of the caller."""

    code = "quota_exceeded"
    repeat = "no"
    usual_status = 413


class UploadTimeout(SvcError):
    """The upload did not arrive in time."""

    code = "upload_timeout"
    repeat = "yes"
    usual_status = 408


class UploadFailed(SvcError):
    """No file could be stored."""

    code = "upload_failed"
    repeat = "yes"
    usual_status = 502


class Unauthorized(SvcError):
    """Valid credentials are required."""

    code = "unauthorized"
    repeat = "no"
    usual_status = 401


class OriginNotAllowed(SvcError):
    """Requests from other hosts and web pages are not served."""

    code = "origin_not_allowed"
    repeat = "no"
    usual_status = 403


class Forbidden(SvcError):
    """The caller may not do this."""

    code = "forbidden"
    repeat = "no"
    usual_status = 403


class RateLimited(SvcError):
    """Too many requests."""

    code = "rate_limited"
    repeat = "yes"
    usual_status = 429


class NotFound(SvcError):
    """There is no such route."""

    code = "not_found"
    repeat = "no"
    usual_status = 404


class MethodNotAllowed(SvcError):
    """The route does not offer this method."""

    code = "method_not_allowed"
    repeat = "no"
    usual_status = 405


class FileNotFound(SvcError):
    """The file does not exist."""

    code = "file_not_found"
    repeat = "no"
    usual_status = 404


class RangeNotSatisfiable(SvcError):
    """The range starts after the end of the file."""

    code = "range_not_satisfiable"
    repeat = "no"
    usual_status = 416


class ExecutionProfileMismatch(SvcError):
    """The requested execution profile is not offered here."""

    code = "execution_profile_mismatch"
    repeat = "no"
    usual_status = 422


class StatefulWorkspaceUnsupported(SvcError):
    """Attached workspaces are not offered."""

    code = "stateful_workspace_unsupported"
    repeat = "no"
    usual_status = 422


class IdempotencyKeyReused(SvcError):
    """The Idempotency-Key was used with another request body."""

    code = "idempotency_key_reused"
    repeat = "no"
    usual_status = 422


class InvalidContinuationToken(SvcError):
    """The continuation token is not valid."""

    code = "invalid_continuation_token"
    repeat = "no"
    usual_status = 400


class ExecutionExpired(SvcError):
    """The execution is over."""

    code = "execution_expired"
    repeat = "no"
    usual_status = 400


class InvalidToolResults(SvcError):
    """The tool results are not valid."""

    code = "invalid_tool_results"
    repeat = "no"
    usual_status = 400


class ToolResultTooLarge(SvcError):
    """A tool result is larger than allowed."""

    code = "tool_result_too_large"
    repeat = "no"
    usual_status = 422


class ToolHistoryTooLarge(SvcError):
    """All tool results together are larger than allowed."""

    code = "tool_history_too_large"
    repeat = "no"
    usual_status = 422


class StateTooLarge(SvcError):
    """The stored state is larger than allowed."""

    code = "state_too_large"
    repeat = "no"
    usual_status = 422


class ContinuationConflict(SvcError):
    """The continuation token was used with other results."""

    code = "continuation_conflict"
    repeat = "no"
    usual_status = 409


class JobNotFound(SvcError):
    """The job does not exist."""

    code = "job_not_found"
    repeat = "no"
    usual_status = 404


class ExecutionCancelled(SvcError):
    """The execution was cancelled."""

    code = "execution_cancelled"
    repeat = "no"
    usual_status = 409


class InputUnavailable(SvcError):
    """An input file is missing or damaged."""

    code = "input_unavailable"
    repeat = "no"
    usual_status = 502


class StorageUnavailable(SvcError):
    """The file storage is away or full."""

    code = "storage_unavailable"
    repeat = "yes"
    usual_status = 503


class StoreUnavailable(SvcError):
    """The state store is away or full."""

    code = "store_unavailable"
    repeat = "yes"
    usual_status = 503


class QueueSaturated(SvcError):
    """The execution could not start in time and was removed; it is safe to repeat it."""

    code = "queue_saturated"
    repeat = "same"
    usual_status = 503


class StartingUp(SvcError):
    """The service is starting."""

    code = "starting_up"
    repeat = "yes"
    usual_status = 503


class ShuttingDown(SvcError):
    """The service is shutting down."""

    code = "shutting_down"
    repeat = "yes"
    usual_status = 503


class RunnerBusy(SvcError):
    """All slots are busy."""

    code = "runner_busy"
    repeat = "yes"
    usual_status = 503


class SandboxSetupFailed(SvcError):
    """The sandbox could not be prepared; the program did not start."""

    code = "sandbox_setup_failed"
    repeat = "same"
    usual_status = 503


class PermissionDenied(SvcError):
    """The sandbox lacks a permission; the program did not start."""

    code = "permission_denied"
    repeat = "same"
    usual_status = 503


class SandboxExecutionFailed(SvcError):
    """The sandbox broke while the program was running."""

    code = "sandbox_execution_failed"
    repeat = "yes"
    usual_status = 502


class ExecutionTimeout(SvcError):
    """The execution took too long and was stopped."""

    code = "execution_timeout"
    repeat = "yes"
    usual_status = 504


class DeadlineExceeded(SvcError):
    """The runner's deadline passed and the run was stopped."""

    code = "deadline_exceeded"
    repeat = "yes"
    usual_status = 504


class ExecutionNotFound(SvcError):
    """The execution does not exist."""

    code = "execution_not_found"
    repeat = "no"
    usual_status = 404


class ManifestMissing(SvcError):
    """An execution manifest is required."""

    code = "manifest_missing"
    repeat = "no"
    usual_status = 401


class ManifestMalformed(SvcError):
    """The execution manifest is malformed."""

    code = "manifest_malformed"
    repeat = "no"
    usual_status = 400


class ManifestKeyMissing(SvcError):
    """No key to verify execution manifests is configured."""

    code = "manifest_key_missing"
    repeat = "no"
    usual_status = 500


class ManifestRefused(SvcError):
    """The execution manifest was refused."""

    code = "manifest_refused"
    repeat = "no"
    usual_status = 403


class EgressGrantRefused(SvcError):
    """The egress grant was refused."""

    code = "egress_grant_refused"
    repeat = "no"
    usual_status = 403


class EgressLedgerRefused(SvcError):
    """The egress ledger refused the request."""

    code = "egress_ledger_refused"
    repeat = "no"
    usual_status = 403


class LedgerConflict(SvcError):
    """The egress ledger is contended."""

    code = "ledger_conflict"
    repeat = "same"
    usual_status = 503


class CallbackRefused(SvcError):
    """The callback token was refused."""

    code = "callback_refused"
    repeat = "no"
    usual_status = 401


class ToolNotDeclared(SvcError):
    """The tool was not declared."""

    code = "tool_not_declared"
    repeat = "no"
    usual_status = 403


class ToolCallTooLarge(SvcError):
    """The tool call is larger than allowed."""

    code = "tool_call_too_large"
    repeat = "no"
    usual_status = 413


class ToolCallTimeout(SvcError):
    """The tool call got no result in time."""

    code = "tool_call_timeout"
    repeat = "no"
    usual_status = 408


class LengthRequired(SvcError):
    """A Content-Length is required."""

    code = "length_required"
    repeat = "no"
    usual_status = 411


class MissingHeaders(SvcError):
    """A required header is absent."""

    code = "missing_headers"
    repeat = "no"
    usual_status = 400


class UpstreamUnavailable(SvcError):
    """An inner service failed."""

    code = "upstream_unavailable"
    repeat = "yes"
    usual_status = 502


class UpstreamTimeout(SvcError):
    """An inner service did not answer in time."""

    code = "upstream_timeout"
    repeat = "yes"
    usual_status = 504


class InternalError(SvcError):
    """Something went wrong inside the service."""

    code = "internal_error"
    repeat = "yes"
    usual_status = 500


BY_CODE: Dict[str, Type[SvcError]] = {
    "invalid_json": InvalidJson,
    "invalid_request": InvalidRequest,
    "invalid_content_type": InvalidContentType,
    "unsupported_language": UnsupportedLanguage,
    "unsupported_version": UnsupportedVersion,
    "invalid_file_reference": InvalidFileReference,
    "reserved_file_name": ReservedFileName,
    "file_reference_denied": FileReferenceDenied,
    "invalid_id": InvalidId,
    "invalid_file_name": InvalidFileName,
    "no_files": NoFiles,
    "too_many_files": TooManyFiles,
    "invalid_multipart": InvalidMultipart,
    "file_too_large": FileTooLarge,
    "request_too_large": RequestTooLarge,
    "quota_exceeded": QuotaExceeded,
    "upload_timeout": UploadTimeout,
    "upload_failed": UploadFailed,
    "unauthorized": Unauthorized,
    "origin_not_allowed": OriginNotAllowed,
    "forbidden": Forbidden,
    "rate_limited": RateLimited,
    "not_found": NotFound,
    "method_not_allowed": MethodNotAllowed,
    "file_not_found": FileNotFound,
    "range_not_satisfiable": RangeNotSatisfiable,
    "execution_profile_mismatch": ExecutionProfileMismatch,
    "stateful_workspace_unsupported": StatefulWorkspaceUnsupported,
    "idempotency_key_reused": IdempotencyKeyReused,
    "invalid_continuation_token": InvalidContinuationToken,
    "execution_expired": ExecutionExpired,
    "invalid_tool_results": InvalidToolResults,
    "tool_result_too_large": ToolResultTooLarge,
    "tool_history_too_large": ToolHistoryTooLarge,
    "state_too_large": StateTooLarge,
    "continuation_conflict": ContinuationConflict,
    "job_not_found": JobNotFound,
    "execution_cancelled": ExecutionCancelled,
    "input_unavailable": InputUnavailable,
    "storage_unavailable": StorageUnavailable,
    "store_unavailable": StoreUnavailable,
    "queue_saturated": QueueSaturated,
    "starting_up": StartingUp,
    "shutting_down": ShuttingDown,
    "runner_busy": RunnerBusy,
    "sandbox_setup_failed": SandboxSetupFailed,
    "permission_denied": PermissionDenied,
    "sandbox_execution_failed": SandboxExecutionFailed,
    "execution_timeout": ExecutionTimeout,
    "deadline_exceeded": DeadlineExceeded,
    "execution_not_found": ExecutionNotFound,
    "manifest_missing": ManifestMissing,
    "manifest_malformed": ManifestMalformed,
    "manifest_key_missing": ManifestKeyMissing,
    "manifest_refused": ManifestRefused,
    "egress_grant_refused": EgressGrantRefused,
    "egress_ledger_refused": EgressLedgerRefused,
    "ledger_conflict": LedgerConflict,
    "callback_refused": CallbackRefused,
    "tool_not_declared": ToolNotDeclared,
    "tool_call_too_large": ToolCallTooLarge,
    "tool_call_timeout": ToolCallTimeout,
    "length_required": LengthRequired,
    "missing_headers": MissingHeaders,
    "upstream_unavailable": UpstreamUnavailable,
    "upstream_timeout": UpstreamTimeout,
    "internal_error": InternalError,
}

__all__ = [
    "BY_CODE",
    "ConnectionFailed",
    "InvalidAnswer",
    "Problem",
    "RequestTimeout",
    "SvcError",
    "InvalidJson",
    "InvalidRequest",
    "InvalidContentType",
    "UnsupportedLanguage",
    "UnsupportedVersion",
    "InvalidFileReference",
    "ReservedFileName",
    "FileReferenceDenied",
    "InvalidId",
    "InvalidFileName",
    "NoFiles",
    "TooManyFiles",
    "InvalidMultipart",
    "FileTooLarge",
    "RequestTooLarge",
    "QuotaExceeded",
    "UploadTimeout",
    "UploadFailed",
    "Unauthorized",
    "OriginNotAllowed",
    "Forbidden",
    "RateLimited",
    "NotFound",
    "MethodNotAllowed",
    "FileNotFound",
    "RangeNotSatisfiable",
    "ExecutionProfileMismatch",
    "StatefulWorkspaceUnsupported",
    "IdempotencyKeyReused",
    "InvalidContinuationToken",
    "ExecutionExpired",
    "InvalidToolResults",
    "ToolResultTooLarge",
    "ToolHistoryTooLarge",
    "StateTooLarge",
    "ContinuationConflict",
    "JobNotFound",
    "ExecutionCancelled",
    "InputUnavailable",
    "StorageUnavailable",
    "StoreUnavailable",
    "QueueSaturated",
    "StartingUp",
    "ShuttingDown",
    "RunnerBusy",
    "SandboxSetupFailed",
    "PermissionDenied",
    "SandboxExecutionFailed",
    "ExecutionTimeout",
    "DeadlineExceeded",
    "ExecutionNotFound",
    "ManifestMissing",
    "ManifestMalformed",
    "ManifestKeyMissing",
    "ManifestRefused",
    "EgressGrantRefused",
    "EgressLedgerRefused",
    "LedgerConflict",
    "CallbackRefused",
    "ToolNotDeclared",
    "ToolCallTooLarge",
    "ToolCallTimeout",
    "LengthRequired",
    "MissingHeaders",
    "UpstreamUnavailable",
    "UpstreamTimeout",
    "InternalError",
]
