/**
 * For each error code: who can remove its cause, how, and whether a retry is safe. docs/errors.md and the clients use this table.
 * A code without a row does not compile.
 */
import type { ErrorCode } from "./errors.ts";

/**
 * `no`: the same request fails again. `yes`: it may succeed later, but the first one may already have had an effect.
 * `same`: the client may send the identical request again at once, and nothing happens twice.
 */
export type Repeat = "no" | "yes" | "same";

/** `component`: only one of the service's own components gets this error, never a caller. */
export type Remedy = "caller" | "operator" | "component";

export interface Advice {
  who: Remedy;
  fix: string;
  repeat: Repeat;
}

const caller = (fix: string, repeat: Repeat = "no"): Advice => ({ who: "caller", fix, repeat });
const operator = (fix: string, repeat: Repeat = "no"): Advice => ({ who: "operator", fix, repeat });
const component = (fix: string, repeat: Repeat = "no"): Advice => ({ who: "component", fix, repeat });

const LATER = "Wait for Retry-After and send it again; when it stays, the component in question is down";

export const ADVICE: Readonly<Record<ErrorCode, Advice>> = {
  invalid_json: caller("Send a JSON object in UTF-8, within 64 levels and 200,000 values"),
  invalid_request: caller(
    "Correct the fields that `details` names; a 408 says that the body came too slowly",
  ),
  invalid_content_type: caller("Send `application/json`, or `multipart/form-data` for uploads"),
  unsupported_language: caller("Choose a language that the message lists, or have the operator install it"),
  unsupported_version: caller("Choose a version that the message lists, or `*`"),
  invalid_file_reference: caller("Correct the references that `details` names"),
  reserved_file_name: caller("Give the file another name"),
  file_reference_denied: caller("Upload the file again, or refer to one of your own"),
  invalid_id: caller("Send the id as an answer gave it"),
  invalid_file_name: caller(
    "Use a relative path without `..`, backslash and control characters; the operator's limits are SANDBOX_MAX_PATH_LENGTH and SANDBOX_MAX_NESTING_DEPTH",
  ),
  no_files: caller("Add a file part"),
  too_many_files: caller("Send fewer files in one request"),
  invalid_multipart: caller("Send the form as RFC 7578 says, with its boundary"),
  file_too_large: caller("Send a smaller file; the operator's limit is MAX_FILE_SIZE"),
  quota_exceeded: caller(
    "Delete files, or wait until unused ones are removed; `quota` has the numbers. The status is 413 for bytes, 429 for the number of files",
  ),
  request_too_large: caller("Send less; large inputs are uploaded and referred to"),
  upload_timeout: caller("Send the form without long pauses", "yes"),
  upload_failed: caller("Look at `files`: each says what was wrong", "yes"),
  unauthorized: caller("Send a valid access token; the log says what was wrong with this one"),
  origin_not_allowed: operator("Name the host in SVC_ALLOWED_HOSTS, or turn authentication on"),
  forbidden: caller("Resume with a token of the user who started the program"),
  rate_limited: caller("Wait for `retry_after_seconds`", "yes"),
  not_found: caller("Compare the path with the page that the service shows at `/docs`"),
  method_not_allowed: caller("Use a method that `Allow` names"),
  job_not_found: caller("Run the program again: the job was removed, is over its time, or was never yours"),
  file_not_found: caller("Upload the file again: it was deleted, is over its time, or was never yours"),
  range_not_satisfiable: caller("Ask for a range within `Content-Range`"),
  execution_profile_mismatch: caller("Ask for the default profile"),
  stateful_workspace_unsupported: caller("Send the request without an attached workspace"),
  idempotency_key_reused: caller("Use a new key for another body"),
  invalid_continuation_token: caller("Send the token as the last answer gave it"),
  execution_expired: caller("Start the program again"),
  invalid_tool_results: caller("Answer calls of the last answer, each at most once"),
  tool_result_too_large: caller("Answer with a smaller result; the program is still paused"),
  tool_history_too_large: caller("Answer with smaller results; the program is still paused"),
  state_too_large: caller("Send less code, fewer tools or smaller calls"),
  continuation_conflict: caller("Send the results that were sent first, or go on from the newest token"),
  execution_cancelled: caller("Start it again when it is still wanted"),
  input_unavailable: caller(
    "Upload the file that the message names again, or delete the session whose state it is: what is stored is missing or damaged",
  ),
  storage_unavailable: operator("Bring the file server and its storage back, or make room there", "yes"),
  store_unavailable: operator("Bring Redis back, or give it room", "yes"),
  queue_saturated: operator("Send it again later; more workers or slots shorten the queue", "same"),
  starting_up: caller(LATER, "yes"),
  shutting_down: caller(LATER, "yes"),
  runner_busy: component("The worker repeats it; more slots shorten the wait", "yes"),
  sandbox_setup_failed: operator(
    "See the log of the runner and of jaild; `./svc doctor` names what is missing",
    "same",
  ),
  permission_denied: operator(
    "Give jaild the permission that its log names; `./svc doctor` checks them",
    "same",
  ),
  sandbox_execution_failed: operator("See the log of the runner: it or jaild broke during the run", "yes"),
  execution_timeout: operator(
    "See the logs of worker and runner: one of them did not end the run in time",
    "yes",
  ),
  deadline_exceeded: component("The runner's own deadline; the caller reads execution_timeout", "yes"),
  execution_not_found: component("The program is run again from its recorded results"),
  manifest_missing: component("Only workers call the runner"),
  manifest_malformed: component("Run workers and runners of fitting versions"),
  manifest_key_missing: operator("Set SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY of the runner"),
  manifest_refused: operator("`reason` says why: compare the keys and clocks of worker and runner"),
  egress_grant_refused: component("`reason` says why: compare the grant secrets and clocks of the gateways"),
  egress_ledger_refused: component("`ledger_reason` says what is used up, revoked or over"),
  ledger_conflict: component("The same call again", "same"),
  callback_refused: component("The program's session is over, or the token belongs to another one"),
  tool_not_declared: component("The program asked for a tool that its start did not declare"),
  tool_call_too_large: component(
    "The program sees a failed call; EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES is the limit",
  ),
  tool_call_timeout: component("The program is run again when its results come"),
  length_required: component("Announce the length of an output file"),
  missing_headers: component("Send the headers that the message names"),
  upstream_unavailable: operator("Bring the file server or the tool call server back", "yes"),
  upstream_timeout: operator("The file server or the tool call server hangs: see its log, restart it", "yes"),
  internal_error: operator("See the log under the request id", "yes"),
};
