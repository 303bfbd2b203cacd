/** Types of requests and answers, from the OpenAPI document of the service. Made by `npm run openapi`. */

/**
 * A pause with calls to answer, or how the program ended.
 */
export type ProgrammaticResponse = ToolCallRequired | ProgrammaticCompleted | ProgrammaticError;

/**
 * A program, and what it gets.
 */
export interface ExecRequestInput {
  /**
   * The program. May be empty.
   */
  code: string;
  /**
   * Language, any alias, any case. Required (or its alias `language`).
   */
  lang?: string | null;
  /**
   * Alias of `lang`; `lang` wins.
   */
  language?: string | null;
  /**
   * `*` (default) or a semver range; the newest installed match is used.
   */
  version?: string | null;
  /**
   * Arguments of the program: up to 256 of up to 100,000 bytes, without NUL.
   */
  args?: string[] | null;
  /**
   * Standard input; without it the program reads end of file at once.
   */
  stdin?: string | null;
  /**
   * Up to 256 stored or inline files, each to its own path.
   */
  files?: (FileRefInput | InlineFileInput)[] | null;
  /**
   * Environment variables of the program: at most 64, values to 8 KiB, 64 KiB together. Names that begin with SVC_ or SANDBOX_ are refused. The program may start more slowly.
   */
  env?: {
    [k: string]: string;
  } | null;
  /**
   * For the log, cut to 128 characters. Never an identity.
   */
  user_id?: string | null;
  /**
   * Refused when it is given: attached workspaces are not offered.
   */
  workspace_instance_id?: unknown;
  /**
   * Wall time limit of the run in ms; default 60000. A larger one than the service allows is lowered.
   */
  run_timeout?: number | null;
  /**
   * Alias of `run_timeout`, which wins.
   */
  timeout?: number | null;
  /**
   * With persistent sessions: which session the run continues, 1 to 128 of `A-Z a-z 0-9 . _ : -`. Without effect where they are off.
   */
  runtime_session_hint?: unknown;
  /**
   * With persistent sessions and without `runtime_session_hint`: an earlier execution whose session the run continues; unknown ones have no effect.
   */
  session_id?: unknown;
}
/**
 * A stored file.
 */
export interface FileRefInput {
  /**
   * Id of the file, as an upload or an earlier execution returned it.
   */
  id: string;
  /**
   * Storage session that holds the file's bytes.
   */
  storage_session_id: string;
  /**
   * Path under /mnt/data. It alone decides where the file appears.
   */
  name: string;
  /**
   * Whose file it is; default `user`.
   */
  kind?: ("user" | "agent" | "skill") | null;
  /**
   * Required for agent and skill: 1 to 128 of `A-Z a-z 0-9 _ . : -`. Not read for user.
   */
  resource_id?: string | null;
  /**
   * Version of a skill: required there, refused elsewhere.
   */
  version?: number | null;
  /**
   * Comes back on the entry of an unchanged file.
   */
  entity_id?: string | null;
}
/**
 * A file that the program may change. It is in the answer only when it is new or changed.
 */
export interface InlineFileInput {
  /**
   * Path under /mnt/data.
   */
  name: string;
  /**
   * At most 1 MiB; 4 MiB for all inline files of a request.
   */
  content: string;
  /**
   * How `content` is written; default `utf8`.
   */
  encoding?: ("utf8" | "base64") | null;
}
/**
 * How the program ended, what it wrote, and its files.
 */
export interface ExecResponse {
  /**
   * New for each execution: the storage session of its outputs.
   */
  session_id: string;
  /**
   * At most 65,536 bytes; more is cut.
   */
  stdout: string;
  /**
   * As `stdout`; then notes of the service, each a line that begins with `[sandbox]`. A program can write such lines, too: rely on `status`, `limits_reached` and `files_omitted`.
   */
  stderr: string;
  /**
   * New and changed files by path, then unchanged inputs.
   */
  files: OutputFile[];
  /**
   * Exit code of the program; 128 and the number of the signal that ended it.
   */
  code: number;
  /**
   * Name of the signal that ended the program.
   */
  signal: string | null;
  limits: UsedLimits;
  /**
   * Limits that the program met without being ended by them.
   */
  limits_reached?: {
    /**
     * Which limit, see docs/limits.md.
     */
    limit:
      | "processes"
      | "workspace_bytes"
      | "workspace_files"
      | "tmp_bytes"
      | "tmp_files"
      | "shm_bytes"
      | "shm_files"
      | "file_size";
    /**
     * What it is: a number or bytes.
     */
    value: number;
  }[];
  /**
   * Paths of stored inputs that the program removed or renamed.
   */
  deleted_files?: string[];
  /**
   * Up to 100 of the files that are not in `files`; absent where none of them is known by name.
   */
  files_omitted?: {
    /**
     * Path under /mnt/data.
     */
    name: string;
    /**
     * What kept it from being stored, see docs/limits.md.
     */
    reason: "count" | "size" | "total_size" | "name" | "type" | "quota" | "upload_failed";
  }[];
  /**
   * How many files are not in `files`.
   */
  files_omitted_count?: number;
  /**
   * Only when storing a file failed.
   */
  artifact_delivery?: {
    /**
     * Always the same.
     */
    code: "artifact_delivery_failed";
    /**
     * Whether any file could be stored.
     */
    status: "partial" | "failed";
    /**
     * Files that were to be stored.
     */
    attempted: number;
    /**
     * Files that were stored.
     */
    delivered: number;
    /**
     * Files that could not be stored.
     */
    failed: number;
  };
  /**
   * What `status` means, in words.
   */
  message: string | null;
  /**
   * Null: the program ended by itself. TO time limit, ML memory limit, OL and EL standard output and error beyond their limit, SG a signal, CE not compiled.
   */
  status: ("TO" | "ML" | "OL" | "EL" | "SG" | "CE") | null;
  /**
   * Wall time of the run in ms; 0 when the program was not started, as after a compiler that failed.
   */
  wall_time: number;
  /**
   * User plus system time of all its processes in ms.
   */
  cpu_time: number;
  /**
   * Peak memory in bytes.
   */
  memory: number;
  /**
   * The language that was used.
   */
  language: string;
  /**
   * Its version.
   */
  version: string;
  timings: Timings;
  /**
   * With persistent sessions: whether the next run of the session begins with what this one left.
   */
  session_state_persisted?: boolean;
  /**
   * With persistent sessions: the state of the session could not be brought back, and the run began with an empty workspace.
   */
  session_state_restore_failed?: boolean;
  /**
   * Another run of the session ended first; the session continues with what that one left.
   */
  session_state_conflict?: true;
  /**
   * Python variables of the session that could not be saved or restored, up to 100.
   *
   * @maxItems 100
   */
  session_state_dropped?: {
    /**
     * Name of the variable.
     */
    name: string;
    /**
     * What kept it from being saved or restored.
     */
    reason: string;
  }[];
}
/**
 * A file that the program made, changed, or left as it was.
 */
export interface OutputFile {
  /**
   * Id of the file.
   */
  id: string;
  /**
   * Path under /mnt/data.
   */
  name: string;
  /**
   * Storage session that holds the file's bytes.
   */
  storage_session_id: string;
  /**
   * Whose file it is; of a new file always `user`.
   */
  kind: "user" | "agent" | "skill";
  /**
   * As in the request; of a new file the id of the caller.
   */
  resource_id?: string;
  /**
   * As in the request.
   */
  version?: number;
  /**
   * The stored input that the program changed. Its id stays valid.
   */
  modified_from?: {
    /**
     * Id of the file, as an upload or an earlier execution returned it.
     */
    id: string;
    /**
     * Storage session that holds the file's bytes.
     */
    storage_session_id: string;
  };
  /**
   * A stored input that the program did not change.
   */
  inherited?: true;
  /**
   * As in the request.
   */
  entity_id?: string;
  /**
   * Bytes.
   */
  size: number;
  /**
   * Media type, as it is stored.
   */
  content_type: string;
}
/**
 * The limits that were used: a request's are lowered to the service's.
 */
export interface UsedLimits {
  /**
   * Wall time of the run in ms.
   */
  run_timeout_ms: number;
  /**
   * Memory of all its processes in bytes.
   */
  memory_bytes: number;
}
/**
 * Where the time went, in ms.
 */
export interface Timings {
  /**
   * Waited for a worker.
   */
  queue_ms: number;
  /**
   * Inputs staged, and the program compiled.
   */
  setup_ms: number;
  /**
   * The program ran.
   */
  run_ms: number;
  /**
   * Outputs found and stored.
   */
  collect_ms: number;
}
/**
 * Starts a program.
 */
export interface ProgrammaticStartInput {
  /**
   * The program.
   */
  code: string;
  /**
   * Up to 100 tools that the program may call, maybe none.
   */
  tools: ToolInput[];
  /**
   * Alias of `language`, which wins.
   */
  lang?: string | null;
  /**
   * `python` (default) or `bash`; wins over `lang`.
   */
  language?: string | null;
  /**
   * `*` (default) or a semver range; the newest installed match is used.
   */
  version?: string | null;
  /**
   * Arguments of the program: up to 256 of up to 100,000 bytes, without NUL.
   */
  args?: string[] | null;
  /**
   * Standard input; without it the program reads end of file at once.
   */
  stdin?: string | null;
  /**
   * Up to 256 stored or inline files, each to its own path.
   */
  files?: (FileRefInput | InlineFileInput)[] | null;
  /**
   * Environment variables of the program: at most 64, values to 8 KiB, 64 KiB together. Names that begin with SVC_ or SANDBOX_ are refused. The program may start more slowly.
   */
  env?: {
    [k: string]: string;
  } | null;
  /**
   * For the log, cut to 128 characters. Never an identity.
   */
  user_id?: string | null;
  /**
   * Refused when it is given: attached workspaces are not offered.
   */
  workspace_instance_id?: unknown;
  /**
   * Run time limit of one round in ms; time spent paused does not count.
   */
  timeout?: number | null;
  /**
   * Alias of `timeout`, which wins.
   */
  run_timeout?: number | null;
}
/**
 * A tool that the program may call.
 */
export interface ToolInput {
  /**
   * Name of the tool; its calls carry it unchanged.
   */
  name?: string | null;
  /**
   * Text for the program's documentation.
   */
  description?: string | null;
  /**
   * JSON schema of the arguments.
   */
  parameters?: unknown;
  /**
   * The same fields, where clients put them here.
   */
  function?: {
    /**
     * Name of the tool; its calls carry it unchanged.
     */
    name?: string | null;
    /**
     * Text for the program's documentation.
     */
    description?: string | null;
    /**
     * JSON schema of the arguments.
     */
    parameters?: unknown;
  } | null;
}
/**
 * The program waits for the results of its calls.
 */
export interface ToolCallRequired {
  /**
   * The program is paused.
   */
  status: "tool_call_required";
  /**
   * The storage session of the program's outputs, the same in all rounds.
   */
  session_id: string;
  /**
   * Calls so far.
   */
  tool_calls_made: number;
  /**
   * Run time of all rounds so far in ms.
   */
  execution_time: number;
  limits: UsedLimits;
  /**
   * Send it back with the results; valid for this pause.
   */
  continuation_token: string;
  /**
   * Every call that waits for its result, in the order in which they were made.
   *
   * @minItems 1
   */
  tool_calls: [ToolCall, ...ToolCall[]];
  /**
   * All output since the start.
   */
  partial_stdout: string;
  /**
   * All error output since the start.
   */
  partial_stderr: string;
}
/**
 * A call that the program waits for.
 */
export interface ToolCall {
  /**
   * Id of the call.
   */
  id: string;
  /**
   * Name of the tool, as it was declared.
   */
  name: string;
  /**
   * Its arguments.
   */
  arguments: {
    [k: string]: unknown;
  };
  /**
   * The same as `arguments`.
   */
  input: {
    [k: string]: unknown;
  };
}
/**
 * The program ended with code 0.
 */
export interface ProgrammaticCompleted {
  /**
   * The program ended well.
   */
  status: "completed";
  /**
   * The storage session of the program's outputs, the same in all rounds.
   */
  session_id: string;
  /**
   * Calls so far.
   */
  tool_calls_made: number;
  /**
   * Run time of all rounds so far in ms.
   */
  execution_time: number;
  limits: UsedLimits;
  /**
   * At most 65,536 bytes; more is cut.
   */
  stdout: string;
  /**
   * As `stdout`; then notes of the service, each a line that begins with `[sandbox]`. A program can write such lines, too: rely on `status`, `limits_reached` and `files_omitted`.
   */
  stderr: string;
  /**
   * New and changed files by path, then unchanged inputs.
   */
  files: OutputFile[];
  /**
   * Exit code of the program; 128 and the number of the signal that ended it.
   */
  code: number;
  /**
   * Name of the signal that ended the program.
   */
  signal: string | null;
  /**
   * Limits that the program met without being ended by them.
   */
  limits_reached?: {
    /**
     * Which limit, see docs/limits.md.
     */
    limit:
      | "processes"
      | "workspace_bytes"
      | "workspace_files"
      | "tmp_bytes"
      | "tmp_files"
      | "shm_bytes"
      | "shm_files"
      | "file_size";
    /**
     * What it is: a number or bytes.
     */
    value: number;
  }[];
  /**
   * Paths of stored inputs that the program removed or renamed.
   */
  deleted_files?: string[];
  /**
   * Up to 100 of the files that are not in `files`; absent where none of them is known by name.
   */
  files_omitted?: {
    /**
     * Path under /mnt/data.
     */
    name: string;
    /**
     * What kept it from being stored, see docs/limits.md.
     */
    reason: "count" | "size" | "total_size" | "name" | "type" | "quota" | "upload_failed";
  }[];
  /**
   * How many files are not in `files`.
   */
  files_omitted_count?: number;
  /**
   * Only when storing a file failed.
   */
  artifact_delivery?: {
    /**
     * Always the same.
     */
    code: "artifact_delivery_failed";
    /**
     * Whether any file could be stored.
     */
    status: "partial" | "failed";
    /**
     * Files that were to be stored.
     */
    attempted: number;
    /**
     * Files that were stored.
     */
    delivered: number;
    /**
     * Files that could not be stored.
     */
    failed: number;
  };
  /**
   * Null: the program ended by itself. TO time limit, ML memory limit, OL and EL standard output and error beyond their limit, SG a signal, CE not compiled.
   */
  sandbox_status: ("TO" | "ML" | "OL" | "EL" | "SG" | "CE") | null;
}
/**
 * The program failed, or a limit ended it.
 */
export interface ProgrammaticError {
  /**
   * The program failed.
   */
  status: "error";
  /**
   * The storage session of the program's outputs, the same in all rounds.
   */
  session_id: string;
  /**
   * Calls so far.
   */
  tool_calls_made: number;
  /**
   * Run time of all rounds so far in ms.
   */
  execution_time: number;
  limits: UsedLimits;
  /**
   * At most 65,536 bytes; more is cut.
   */
  stdout: string;
  /**
   * As `stdout`; then notes of the service, each a line that begins with `[sandbox]`. A program can write such lines, too: rely on `status`, `limits_reached` and `files_omitted`.
   */
  stderr: string;
  /**
   * New and changed files by path, then unchanged inputs.
   */
  files: OutputFile[];
  /**
   * Exit code of the program; 128 and the number of the signal that ended it.
   */
  code: number;
  /**
   * Name of the signal that ended the program.
   */
  signal: string | null;
  /**
   * Limits that the program met without being ended by them.
   */
  limits_reached?: {
    /**
     * Which limit, see docs/limits.md.
     */
    limit:
      | "processes"
      | "workspace_bytes"
      | "workspace_files"
      | "tmp_bytes"
      | "tmp_files"
      | "shm_bytes"
      | "shm_files"
      | "file_size";
    /**
     * What it is: a number or bytes.
     */
    value: number;
  }[];
  /**
   * Paths of stored inputs that the program removed or renamed.
   */
  deleted_files?: string[];
  /**
   * Up to 100 of the files that are not in `files`; absent where none of them is known by name.
   */
  files_omitted?: {
    /**
     * Path under /mnt/data.
     */
    name: string;
    /**
     * What kept it from being stored, see docs/limits.md.
     */
    reason: "count" | "size" | "total_size" | "name" | "type" | "quota" | "upload_failed";
  }[];
  /**
   * How many files are not in `files`.
   */
  files_omitted_count?: number;
  /**
   * Only when storing a file failed.
   */
  artifact_delivery?: {
    /**
     * Always the same.
     */
    code: "artifact_delivery_failed";
    /**
     * Whether any file could be stored.
     */
    status: "partial" | "failed";
    /**
     * Files that were to be stored.
     */
    attempted: number;
    /**
     * Files that were stored.
     */
    delivered: number;
    /**
     * Files that could not be stored.
     */
    failed: number;
  };
  /**
   * Null: the program ended by itself. TO time limit, ML memory limit, OL and EL standard output and error beyond their limit, SG a signal, CE not compiled.
   */
  sandbox_status: ("TO" | "ML" | "OL" | "EL" | "SG" | "CE") | null;
  /**
   * A sentence, not a code.
   */
  error: string;
  /**
   * What kind of failure.
   */
  error_type:
    | "timeout"
    | "memory_limit"
    | "output_limit"
    | "nonzero_exit"
    | "signal"
    | "unregistered_tool"
    | "tool_limit"
    | "replay_diverged";
}
/**
 * The files, all stored.
 */
export interface UploadResponse {
  /**
   * All files were stored.
   */
  message: "success";
  /**
   * The storage session: one for all files of a request.
   */
  storage_session_id: string;
  /**
   * The files in the order of the form.
   */
  files: UploadedFile[];
}
/**
 * A file that was stored.
 */
export interface UploadedFile {
  /**
   * It was stored.
   */
  status: "success";
  /**
   * Name as it was sent, with its folders.
   */
  name: string;
  /**
   * The same as `name`.
   */
  filename: string;
  /**
   * Id of the file.
   */
  id: string;
  /**
   * The same as `id`.
   */
  fileId: string;
  /**
   * The storage session: one for all files of a request.
   */
  storage_session_id: string;
  /**
   * Bytes.
   */
  size: number;
  /**
   * When it was stored, ISO 8601 in UTC.
   */
  lastModified: string;
  /**
   * Changes with the bytes; without quotes.
   */
  etag: string;
  /**
   * Media type, as it is stored.
   */
  contentType: string;
  /**
   * As headers of the stored object.
   */
  metadata: {
    /**
     * Its media type.
     */
    "content-type": string;
    /**
     * Its name.
     */
    "original-filename": string;
  };
}
/**
 * What is known of the file.
 */
export interface FileMetadata {
  /**
   * When it was stored, ISO 8601 in UTC.
   */
  lastModified: string;
  /**
   * Bytes.
   */
  size: number;
  /**
   * Changes with the bytes; without quotes.
   */
  etag: string;
  /**
   * Media type, as it is stored.
   */
  contentType: string;
  /**
   * `<session>/<file id>`
   */
  name: string;
  /**
   * Name as it was sent, with its folders.
   */
  originalFilename: string;
  /**
   * Id of the file.
   */
  id: string;
  /**
   * The storage session: one for all files of a request.
   */
  storage_session_id: string;
  /**
   * Programs cannot change it.
   */
  readOnly: boolean;
}
/**
 * The program will be run; nobody waits for it.
 */
export interface CreatedJob {
  /**
   * Id of the job.
   */
  job_id: string;
  /**
   * Always the same.
   */
  status: "queued";
}
/**
 * A job of the caller, and how it ended.
 */
export interface Job {
  /**
   * Id of the job.
   */
  job_id: string;
  /**
   * A program that fails or times out has completed its job; a job fails by the service.
   */
  status: "queued" | "running" | "completed" | "failed" | "cancelled";
  /**
   * Language of its program.
   */
  language: string;
  /**
   * When it was made.
   */
  created_at: string;
  /**
   * When a worker took it up.
   */
  started_at?: string;
  /**
   * When it ended.
   */
  ended_at?: string;
  result?: ExecResponse;
  error?: ErrorBody;
}
/**
 * Why a request was refused or failed. At most 16 KiB.
 */
export interface ErrorBody {
  /**
   * Stable code, see docs/errors.md.
   */
  error: string;
  /**
   * A sentence for a person.
   */
  message: string;
  /**
   * As in `X-Request-Id`; the logs know it.
   */
  request_id: string;
  /**
   * The wrong places, where the request has some.
   */
  details?: Problem[];
  /**
   * With rate_limited only: when to send it again.
   */
  retry_after_seconds?: number;
  /**
   * The same as `retry_after_seconds`.
   */
  retry_after?: number;
  /**
   * With quota_exceeded only: its numbers.
   */
  quota?: {
    /**
     * Files, or states of sessions.
     */
    kind: "files" | "session_states";
    /**
     * What there is no room for.
     */
    resource: "bytes" | "objects";
    /**
     * What the caller has stored.
     */
    used: number;
    /**
     * What the caller may have stored.
     */
    limit: number;
    /**
     * What would have been added.
     */
    asked: number;
  };
}
/**
 * One wrong place of a request.
 */
export interface Problem {
  /**
   * Where in the request.
   */
  path: string;
  /**
   * What is wrong there.
   */
  problem: string;
}
/**
 * Jobs of the caller.
 */
export interface JobList {
  /**
   * The newest first, at most 100.
   */
  jobs: JobSummary[];
  /**
   * Send it as `cursor` for the next page; absent on the last one.
   */
  next_cursor?: string;
}
/**
 * A job of the caller.
 */
export interface JobSummary {
  /**
   * Id of the job.
   */
  job_id: string;
  /**
   * A program that fails or times out has completed its job; a job fails by the service.
   */
  status: "queued" | "running" | "completed" | "failed" | "cancelled";
  /**
   * Language of its program.
   */
  language: string;
  /**
   * When it was made.
   */
  created_at: string;
  /**
   * When a worker took it up.
   */
  started_at?: string;
  /**
   * When it ended.
   */
  ended_at?: string;
}
/**
 * What can be run here.
 */
export interface Languages {
  /**
   * All that are known, also those that are absent.
   */
  languages: Language[];
}
/**
 * A language, and what its programs find.
 */
export interface Language {
  /**
   * The name in answers; a request may use it or an alias.
   */
  name: string;
  /**
   * Null when it is absent.
   */
  version: string | null;
  /**
   * Other names that a request may use.
   */
  aliases: string[];
  /**
   * Of the file that holds the program.
   */
  file_extension: string;
  /**
   * `absent`: not installed here.
   */
  status: "ready" | "absent";
  /**
   * Libraries beside those of the language.
   */
  packages: {
    /**
     * Name of the library.
     */
    name: string;
    /**
     * Its version.
     */
    version: string;
  }[];
  /**
   * Programs that may be called.
   */
  commands: string[];
  limits?: LanguageLimits;
  /**
   * No program has a network.
   */
  network: false;
}
/**
 * What a run of this language may use.
 */
export interface LanguageLimits {
  /**
   * Wall time of a run without `run_timeout`, in ms.
   */
  run_timeout_ms: number;
  /**
   * Memory of all processes of a run together.
   */
  memory_bytes: number;
  /**
   * What is kept of each output stream.
   */
  output_bytes: number;
  /**
   * Files that a run returns.
   */
  files: number;
  /**
   * Largest file that a run returns.
   */
  file_bytes: number;
  /**
   * Processes and threads of a run.
   */
  processes: number;
}
/**
 * All persistent sessions of the caller.
 */
export interface SessionList {
  /**
   * The last used one first.
   */
  sessions: Session[];
}
/**
 * A persistent session of the caller.
 */
export interface Session {
  /**
   * Id of the session.
   */
  id: string;
  /**
   * The `runtime_session_hint` of its runs; absent for the default session.
   */
  hint?: string;
  /**
   * When its first run began.
   */
  created_at: string;
  /**
   * When it was last used.
   */
  last_used_at: string;
  /**
   * When it ends if it is not used before.
   */
  expires_at: string;
  /**
   * Bytes of its state as it is stored; 0 without one.
   */
  size: number;
  /**
   * Language of its last run.
   */
  language_last: string;
}
/**
 * The files of the current state of a session.
 */
export interface SessionFiles {
  /**
   * By path.
   */
  files: {
    /**
     * Path under /mnt/data.
     */
    name: string;
    /**
     * Bytes.
     */
    size: number;
    /**
     * Permission bits, as a number.
     */
    mode: number;
  }[];
}
/**
 * The programs are cancelled.
 */
export interface CancelResponse {
  /**
   * Always the same.
   */
  status: "cancelled";
  /**
   * How many executions were cancelled, maybe none.
   */
  cancelled: number;
}
