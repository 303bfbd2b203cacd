/** Variables about executions that several components apply: nested time limits, sizes, tool calls. */
import { WIDEST_NAME_LIMITS } from "@svc/contracts";
import { OUTPUT_BYTES } from "../jail-bounds.ts";
import { limitOverrides } from "../limit-overrides.ts";
import {
  bool,
  count,
  int,
  LONGEST_TIMER_SECONDS,
  ms,
  oneOf,
  seconds,
  size,
  type Variable,
  withNote,
} from "../types.ts";

const NAME_CHARS = { min: 1, max: WIDEST_NAME_LIMITS.maxLength };
const NAME_SEGMENTS = { min: 1, max: WIDEST_NAME_LIMITS.maxDepth };

export const EXECUTIONS = {
  MAX_FILE_SIZE: size(25 * 2 ** 20, "Largest uploaded file.", { min: 1 }),
  JOB_TIMEOUT: ms(300_000, "Ceiling of the run time of an execution over all its rounds."),
  MAX_RUN_TIMEOUT: withNote(ms(300_000, "Ceiling of a request's run limit."), "= JOB_TIMEOUT"),
  SANDBOX_RUN_TIMEOUT: ms(60_000, "Run limit of requests that name none."),
  SANDBOX_COMPILE_TIMEOUT: ms(30_000, "Time limit of the compiler."),
  JOB_QUEUE_WAIT_MS: ms(60_000, "How long a job may wait for its start."),
  JOB_PRIME_ALLOWANCE_MS: ms(120_000, "Allowance for staging inputs within the runner's deadline."),
  JOB_POSTPROCESS_ALLOWANCE_MS: ms(60_000, "Allowance for storing outputs within the runner's deadline."),
  JOB_WAIT_GRACE_MS: ms(15_000, "How much later each outer deadline ends."),
  PTC_MODE: oneOf(["live", "replay"], "live", "How paused programs are kept."),
  PTC_MAX_CALLS: count(200, "Tool calls per programmatic execution."),
  PTC_MAX_HISTORY_BYTES: size(40_000_000, "Largest sum of tool results."),
  TOOL_CALL_REQUEST_TIMEOUT: ms(300_000, "How long a program may be paused live."),
  TOOL_CALL_SESSION_EXPIRY: seconds(600, "How long a program may be paused at all."),
  EGRESS_GATEWAY_MAX_FILE_BYTES: size(10_000_000, "Largest output file."),
  EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES: size(1_048_576, "Largest tool call."),
  EGRESS_GATEWAY_MAX_PATH_LENGTH: int(256, "Longest output name, in characters.", NAME_CHARS),
  EGRESS_GATEWAY_MAX_NESTING_DEPTH: int(10, "Most segments of an output name.", NAME_SEGMENTS),
  EGRESS_GRANT_TTL_SECONDS: seconds(
    900,
    "Longest life of a grant: the deadline of a worker for a run as long as JOB_TIMEOUT and 60 s, at least.",
  ),
  EXECUTION_MANIFEST_MAX_UPLOAD_BYTES: size(500_000_000, "Output bytes of one execution."),
  EXECUTION_MANIFEST_MAX_OUTPUT_FILES: count(50, "Output files of one execution."),
  EXECUTION_MANIFEST_MAX_REQUESTS: count(1000, "Gateway requests of one execution."),
  EXECUTION_MANIFEST_MAX_TOOL_CALLS: count(200, "Tool calls of one execution."),
  SVC_PERSIST_SESSIONS: bool(
    false,
    "Runs continue each other: the workspace, and Python's variables, are there in a user's next run. Set it for API, workers and runners alike.",
  ),
  SVC_SESSION_STATE_MAX_BYTES: size(104_857_600, "Largest state of a session, as stored and unpacked."),
  SVC_SESSION_STATE_TTL_SECONDS: seconds(604_800, "Life of a session after its last use."),
  SVC_SESSION_STATE_SWEEP_SECONDS: seconds(
    600,
    "How often snapshots that nothing needs any more are removed.",
    LONGEST_TIMER_SECONDS,
  ),
  SANDBOX_OUTPUT_MAX_SIZE: size(65_536, "Bytes kept of each output stream.", OUTPUT_BYTES),
  SANDBOX_MAX_INPUT_FILES: count(256, "Input files of one run.", 256),
  SANDBOX_MAX_PATH_LENGTH: int(256, "Longest file name, in characters.", NAME_CHARS),
  SANDBOX_MAX_NESTING_DEPTH: int(10, "Most segments of a file name.", NAME_SEGMENTS),
  SANDBOX_LIMIT_OVERRIDES: limitOverrides(
    'Limits per language, `*` for all, such as `{"java": {"run_memory_limit": 268435456}}`; also `run_timeout`, `run_cpu_time`, `compile_timeout`, `compile_memory_limit`, `max_process_count`, `max_open_files`, `max_file_size`, `output_max_size`.',
  ),
} satisfies Record<string, Variable<unknown>>;
