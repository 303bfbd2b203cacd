/**
 * The error table: every stable error code, its HTTP status, and the sentence used when the thrower gives none.
 * A code without a row does not compile. error-advice.ts says what to do about each code. Where the status depends on the route,
 * the thrower sets it.
 * On the exec routes permanent refusals are 400, 403 or 422: clients read 404, 409, 413 and 5xx there as "try again".
 */
export const ERRORS = {
  invalid_json: { status: 400, message: "The request body is not a JSON object." },
  invalid_request: { status: 400, message: "The request is not valid." },
  invalid_content_type: { status: 400, message: "The Content-Type of the request is not accepted here." },
  unsupported_language: { status: 400, message: "The language is not supported." },
  unsupported_version: { status: 400, message: "No installed version of the language fits." },
  invalid_file_reference: { status: 400, message: "A file reference is not valid." },
  reserved_file_name: { status: 400, message: "The file name belongs to the service." },
  file_reference_denied: { status: 403, message: "A referenced file is not available to the caller." },
  invalid_id: { status: 400, message: "An id must have exactly 21 characters of A-Z, a-z, 0-9, _ and -." },
  invalid_file_name: { status: 400, message: "The file name is not valid." },
  no_files: { status: 400, message: "The form holds no file." },
  too_many_files: { status: 400, message: "The request holds too many files." },
  invalid_multipart: { status: 400, message: "The multipart form is broken." },
  file_too_large: { status: 413, message: "The file is larger than allowed." },
  request_too_large: { status: 413, message: "The request body is larger than allowed." },
  quota_exceeded: { status: 413, message: "There is no room for more files of the caller." },
  upload_timeout: { status: 408, message: "The upload did not arrive in time." },
  upload_failed: { status: 502, message: "No file could be stored." },
  unauthorized: { status: 401, message: "Valid credentials are required." },
  origin_not_allowed: { status: 403, message: "Requests from other hosts and web pages are not served." },
  forbidden: { status: 403, message: "The caller may not do this." },
  rate_limited: { status: 429, message: "Too many requests." },
  not_found: { status: 404, message: "There is no such route." },
  method_not_allowed: { status: 405, message: "The route does not offer this method." },
  file_not_found: { status: 404, message: "The file does not exist." },
  range_not_satisfiable: { status: 416, message: "The range starts after the end of the file." },
  execution_profile_mismatch: {
    status: 422,
    message: "The requested execution profile is not offered here.",
  },
  stateful_workspace_unsupported: { status: 422, message: "Attached workspaces are not offered." },
  idempotency_key_reused: { status: 422, message: "The Idempotency-Key was used with another request body." },
  invalid_continuation_token: { status: 400, message: "The continuation token is not valid." },
  execution_expired: { status: 400, message: "The execution is over." },
  invalid_tool_results: { status: 400, message: "The tool results are not valid." },
  tool_result_too_large: { status: 422, message: "A tool result is larger than allowed." },
  tool_history_too_large: { status: 422, message: "All tool results together are larger than allowed." },
  state_too_large: { status: 422, message: "The stored state is larger than allowed." },
  continuation_conflict: { status: 409, message: "The continuation token was used with other results." },
  job_not_found: { status: 404, message: "The job does not exist." },
  execution_cancelled: { status: 409, message: "The execution was cancelled." },
  input_unavailable: { status: 502, message: "An input file is missing or damaged." },
  storage_unavailable: { status: 503, message: "The file storage is away or full." },
  store_unavailable: { status: 503, message: "The state store is away or full." },
  queue_saturated: {
    status: 503,
    message: "The execution could not start in time and was removed; it is safe to repeat it.",
  },
  starting_up: { status: 503, message: "The service is starting." },
  shutting_down: { status: 503, message: "The service is shutting down." },
  runner_busy: { status: 503, message: "All slots are busy." },
  sandbox_setup_failed: {
    status: 503,
    message: "The sandbox could not be prepared; the program did not start.",
  },
  permission_denied: { status: 503, message: "The sandbox lacks a permission; the program did not start." },
  sandbox_execution_failed: { status: 502, message: "The sandbox broke while the program was running." },
  execution_timeout: { status: 504, message: "The execution took too long and was stopped." },
  deadline_exceeded: { status: 504, message: "The runner's deadline passed and the run was stopped." },
  execution_not_found: { status: 404, message: "The execution does not exist." },
  manifest_missing: { status: 401, message: "An execution manifest is required." },
  manifest_malformed: { status: 400, message: "The execution manifest is malformed." },
  manifest_key_missing: { status: 500, message: "No key to verify execution manifests is configured." },
  manifest_refused: { status: 403, message: "The execution manifest was refused." },
  egress_grant_refused: { status: 403, message: "The egress grant was refused." },
  egress_ledger_refused: { status: 403, message: "The egress ledger refused the request." },
  ledger_conflict: { status: 503, message: "The egress ledger is contended." },
  callback_refused: { status: 401, message: "The callback token was refused." },
  tool_not_declared: { status: 403, message: "The tool was not declared." },
  tool_call_too_large: { status: 413, message: "The tool call is larger than allowed." },
  tool_call_timeout: { status: 408, message: "The tool call got no result in time." },
  length_required: { status: 411, message: "A Content-Length is required." },
  missing_headers: { status: 400, message: "A required header is absent." },
  upstream_unavailable: { status: 502, message: "An inner service failed." },
  upstream_timeout: { status: 504, message: "An inner service did not answer in time." },
  internal_error: { status: 500, message: "Something went wrong inside the service." },
} as const satisfies Record<string, { status: number; message: string }>;

export type ErrorCode = keyof typeof ERRORS;

/** One wrong place of a request: `path` like `files[2].name`. */
export interface Problem {
  path: string;
  problem: string;
}

export interface ServiceErrorOptions {
  status?: number;
  details?: Problem[];
  /** Further fields of the error body, such as `reason` or `retry_after_seconds`. */
  extra?: Record<string, unknown>;
  headers?: Record<string, string>;
  cause?: unknown;
}

/**
 * The only error type that reaches a client. Callers see its message, so it never holds host names, paths of the
 * service, job ids or texts of other components. Put details for the log into `cause`.
 */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: Problem[] | undefined;
  readonly extra: Record<string, unknown> | undefined;
  readonly headers: Record<string, string> | undefined;

  constructor(code: ErrorCode, message?: string, options: ServiceErrorOptions = {}) {
    super(message ?? ERRORS[code].message, { cause: options.cause });
    this.name = "ServiceError";
    this.code = code;
    this.status = options.status ?? ERRORS[code].status;
    this.details = options.details;
    this.extra = options.extra;
    this.headers = options.headers;
  }
}

export function isErrorCode(text: unknown): text is ErrorCode {
  return typeof text === "string" && Object.hasOwn(ERRORS, text);
}

const MAX_BODY_BYTES = 16 * 1024;
const MAX_DETAILS = 100;
const MAX_MESSAGE_CHARS = 1000;
const MAX_PROBLEM_CHARS = 300;

const cut = (text: string, chars: number) => text.slice(0, chars).toWellFormed();
const jsonBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

/** The body of an error answer. At most 16 KiB, because clients stop reading longer error bodies. */
export function errorBody(error: ServiceError, requestId: string): Record<string, unknown> {
  const body: Record<string, unknown> = {
    ...error.extra,
    error: error.code,
    message: cut(error.message, MAX_MESSAGE_CHARS),
    request_id: requestId,
  };
  if (error.details !== undefined) {
    const details: Problem[] = [];
    body.details = details;
    let left = MAX_BODY_BYTES - jsonBytes(body);
    for (const { path, problem } of error.details.slice(0, MAX_DETAILS)) {
      const item = { path: cut(path, MAX_PROBLEM_CHARS), problem: cut(problem, MAX_PROBLEM_CHARS) };
      left -= jsonBytes(item) + 1;
      if (left < 0) break;
      details.push(item);
    }
  }
  return body;
}
