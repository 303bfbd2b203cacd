/**
 * What the document says about each operation beyond the schemas of its route: what it does, the headers that it reads and sends, and
 * its error codes by status. An end-to-end test checks every answer against it.
 */
import type { ErrorCode } from "@svc/contracts";
import type { AnswerHeader, RequestHeader } from "./headers.ts";

export type Refusals = Readonly<Record<number, readonly ErrorCode[]>>;

export interface Operation {
  description: string;
  /** `open`: anybody may call, without limit. `limited`: authenticated callers, within their window. */
  access: "open" | "limited";
  reads?: readonly RequestHeader[];
  /** Headers by status. */
  sends?: Readonly<Record<number, readonly AnswerHeader[]>>;
  refusals: Refusals;
  /** Errors of 502 and above may name the execution. */
  namesExecution?: true;
}

/** Refusals of every operation. */
const ANYWHERE: Refusals = { 403: ["origin_not_allowed"], 500: ["internal_error"] };
/** Refusals of operations that authenticate their caller. */
const WITH_CALLER: Refusals = {
  401: ["unauthorized"],
  422: ["execution_profile_mismatch"],
  429: ["rate_limited"],
  503: ["store_unavailable", "starting_up", "shutting_down"],
};

export function refusalsOf({ access, refusals }: Operation): Refusals {
  return access === "open" ? merged(ANYWHERE, refusals) : merged(ANYWHERE, WITH_CALLER, refusals);
}

function merged(...parts: readonly Refusals[]): Refusals {
  const all: Record<number, ErrorCode[]> = {};
  for (const part of parts) {
    for (const [status, codes] of Object.entries(part)) {
      all[Number(status)] = [...new Set([...(all[Number(status)] ?? []), ...codes])];
    }
  }
  return all;
}

/** A body that is too large gets 422 on these routes, because their clients read 413 as "try again". */
const JSON_BODY: Refusals = {
  400: ["invalid_json", "invalid_request", "invalid_content_type"],
  408: ["invalid_request"],
  422: ["request_too_large"],
};

const PROGRAM: Refusals = merged(JSON_BODY, {
  400: [
    "unsupported_language",
    "unsupported_version",
    "invalid_file_reference",
    "reserved_file_name",
    "too_many_files",
  ],
  403: ["file_reference_denied"],
  422: ["stateful_workspace_unsupported"],
  502: ["input_unavailable", "sandbox_execution_failed"],
  503: ["storage_unavailable", "queue_saturated", "sandbox_setup_failed", "permission_denied"],
  504: ["execution_timeout"],
});

const FORM: Refusals = {
  400: ["invalid_content_type", "invalid_multipart", "invalid_request", "no_files"],
  408: ["upload_timeout"],
  413: ["request_too_large"],
  503: ["storage_unavailable"],
};

const STORED_FILES: Refusals = {
  400: ["invalid_id", "invalid_request"],
  404: ["file_not_found"],
  503: ["storage_unavailable"],
};

/** Describes answers with `Accept: text/event-stream`. */
const EVENTS =
  "With `Accept: text/event-stream` the answer is a stream of server-sent events, each with a JSON object as `data`: `started` " +
  "{session_id, language, version}, `stdout` and `stderr` {text} as the program writes them, `file` for each new or changed entry of " +
  "`files`, and last `result` with the whole answer, or `error` with an error body. Joined, the texts of an output are its field in the " +
  "answer. Failures before the first event are ordinary errors with their status.";

const JOB: Refusals = { 400: ["invalid_request"], 404: ["job_not_found"] };

const FILE_HEADERS: readonly AnswerHeader[] = [
  "Accept-Ranges",
  "Cache-Control",
  "Content-Disposition",
  "Content-Length",
  "ETag",
  "Last-Modified",
  "X-Content-Type-Options",
  "X-Read-Only",
];

export const OPERATIONS: Readonly<Record<string, Operation>> = {
  health: {
    description: "Whether the process lives. Asks nobody else.",
    access: "open",
    refusals: {},
  },
  ready: {
    description:
      "Whether executions go through: Redis, the file server, and for each queue an execution that went all the way in the last minute.",
    access: "open",
    refusals: {},
  },
  healthDetailed: {
    description: "The checks of readiness, with how long each took, and the version.",
    access: "limited",
    refusals: {},
  },
  upload: {
    description:
      "Stores files in a new storage session. Fields and files may come in any order. One file that cannot be stored refuses the " +
      "request, and nothing stays.",
    access: "limited",
    refusals: merged(FORM, {
      400: ["too_many_files", "invalid_file_name"],
      413: ["file_too_large", "quota_exceeded"],
      429: ["quota_exceeded"],
    }),
  },
  uploadBatch: {
    description:
      "Stores files in a new storage session and answers for each whether it was stored. When none was, the status is 413 if all " +
      "were too large or found no room, 429 if all were more files than the caller may have, 502 if storage failed for all, else 400, " +
      "and the body has the form of a 200.",
    access: "limited",
    refusals: FORM,
  },
  download: {
    description:
      "The bytes of a file of the caller, of an agent or of a skill. HEAD answers the headers alone. A fault cuts the connection.",
    access: "limited",
    reads: ["Range", "If-Range", "If-None-Match", "If-Modified-Since"],
    sends: {
      200: FILE_HEADERS,
      206: [...FILE_HEADERS, "Content-Range"],
      304: ["ETag", "Last-Modified"],
      416: ["Content-Range"],
    },
    refusals: merged(STORED_FILES, { 416: ["range_not_satisfiable"] }),
  },
  fileMetadata: {
    description: "What is known of a file whose bytes are really there.",
    access: "limited",
    refusals: STORED_FILES,
  },
  listFiles: {
    description: "The files of a storage session that belong to the caller, agent or skill.",
    access: "limited",
    refusals: STORED_FILES,
  },
  deleteFile: {
    description: "Deletes a file. References to it are refused from then on.",
    access: "limited",
    refusals: STORED_FILES,
  },
  usage: {
    description: "The caller's quotas of stored files and of states of sessions, and what is used of each.",
    access: "limited",
    refusals: { 503: ["storage_unavailable"] },
  },
  listSessions: {
    description:
      "The persistent sessions of the caller, the last used first. 404 `not_found` where the service keeps none.",
    access: "limited",
    refusals: { 404: ["not_found"] },
  },
  listSessionFiles: {
    description: "The files of the state that the next run of the session begins with.",
    access: "limited",
    refusals: {
      400: ["invalid_request"],
      404: ["file_not_found", "not_found"],
      502: ["input_unavailable"],
      503: ["storage_unavailable"],
    },
  },
  sessionFile: {
    description: "The bytes of one file of the state that the next run of the session begins with.",
    access: "limited",
    sends: { 200: ["Cache-Control", "Content-Length", "X-Content-Type-Options"] },
    refusals: {
      400: ["invalid_request"],
      404: ["file_not_found", "not_found"],
      502: ["input_unavailable"],
      503: ["storage_unavailable"],
    },
  },
  deleteSession: {
    description:
      "Deletes a session and its state. A run of it that is still going ends as usual, and is not kept.",
    access: "limited",
    refusals: { 400: ["invalid_request"], 404: ["file_not_found", "not_found"] },
  },
  exec: {
    description:
      "Runs a program in a jail of its own and answers when it has ended. A program that fails is a 200: the status speaks of the " +
      "service. A client that closes the connection cancels its run.\n\n" +
      EVENTS,
    access: "limited",
    reads: ["Idempotency-Key", "Prefer", "X-LibreChat-Code-Workspace-ID"],
    sends: {
      200: ["X-SVC-Ignored-Fields", "Idempotency-Replayed"],
      202: ["X-SVC-Ignored-Fields", "Idempotency-Replayed", "Location", "Preference-Applied"],
      400: ["X-SVC-Ignored-Fields"],
    },
    refusals: merged(PROGRAM, { 422: ["idempotency_key_reused"] }),
  },
  getJob: {
    description:
      "A job of the caller: whether it waits, runs or has ended, and its answer. With `wait_ms` it is answered when the job has ended, " +
      "at the latest after that time. Kept for an hour after its end, if the operator says nothing else.",
    access: "limited",
    refusals: JOB,
  },
  jobEvents: {
    description:
      "What the program of a job writes, from its beginning, while it runs or afterwards: the events of /v1/exec, `result` or `error` " +
      "last. Several may read at once. To close the connection does not cancel the job.",
    access: "limited",
    refusals: JOB,
  },
  listJobs: {
    description: "The jobs of the caller, the newest first, a hundred on a page.",
    access: "limited",
    refusals: { 400: ["invalid_request"] },
  },
  deleteJob: {
    description:
      "Ends a job that waits or runs: 202, it becomes `cancelled` and its events end with `error`. Removes one that has ended: 204.",
    access: "limited",
    refusals: JOB,
  },
  listLanguages: {
    description:
      "Languages, their libraries, commands and limits. `?format=text` answers text/plain of less than 4 KB, to paste into the " +
      "definition of a tool.",
    access: "limited",
    refusals: { 400: ["invalid_request"] },
  },
  openapi: {
    description: "This document. `/docs` shows it as a page.",
    access: "limited",
    refusals: {},
  },
  execProgrammatic: {
    description:
      "Runs a program that may call the tools of its caller. At its calls it pauses: the answer lists them and has a continuation " +
      "token; the same route takes their results with the token and goes on. The same token and results give the same answer. " +
      "docs/tool-calling.md tells more.\n\n" +
      EVENTS,
    access: "limited",
    reads: ["X-LibreChat-Code-Request-ID", "X-LibreChat-Code-Workspace-ID"],
    sends: { 200: ["X-SVC-Ignored-Fields"], 400: ["X-SVC-Ignored-Fields"] },
    refusals: merged(PROGRAM, {
      400: ["invalid_continuation_token", "execution_expired", "invalid_tool_results"],
      403: ["forbidden"],
      409: ["continuation_conflict", "execution_cancelled"],
      422: ["tool_result_too_large", "tool_history_too_large", "state_too_large"],
      502: ["internal_error"],
    }),
    namesExecution: true,
  },
  cancelProgrammatic: {
    description:
      "Kills the caller's programs that were started with this label, running or paused. Their waiting requests end with 409, " +
      "their tokens are no longer valid.",
    access: "limited",
    sends: { 200: ["X-SVC-Ignored-Fields"], 400: ["X-SVC-Ignored-Fields"] },
    refusals: JSON_BODY,
  },
};
