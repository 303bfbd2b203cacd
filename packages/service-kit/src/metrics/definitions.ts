/**
 * Every metric of the components, by name. docs/metrics.md is generated from this table, and components create their metrics only
 * from it (made.ts). Labels have few values, none from a caller's text. Metrics of the process itself come from Node and prom-client.
 */
import { HTTP_BUCKETS, JOB_BUCKETS, STAGE_BUCKETS, STORED_KINDS } from "@svc/contracts";
import type { Component } from "../config/types.ts";
import type { VariableName } from "../config/variables.ts";

export interface MetricDefinition {
  type: "counter" | "gauge" | "histogram";
  components: readonly Component[];
  help: string;
  /** For each label a list of its values, or a description of them. A counter whose values are all listed starts with all of them at 0. */
  labels: Readonly<Record<string, readonly string[] | string>>;
  /** Upper bounds of a histogram, in the unit that its name ends with. */
  buckets?: readonly number[];
  /** The metric exists only when this variable is set, or true. */
  needs?: VariableName;
}

const EVERY: readonly Component[] = [
  "api",
  "worker",
  "runner",
  "egress-gateway",
  "file-server",
  "tool-call-server",
];
const LANGUAGE = { language: "name of the runner, such as `python`" } as const;
const QUEUES = ["python-queue", "other-queue"] as const;
const TRANSFERS = { outcome: ["success", "refused", "failed", "aborted"] } as const;
const HTTP = {
  method: "method; `unknown` of what is no HTTP",
  route: "pattern of the route, or `unmatched`",
  status: "of the answer; 499: the client left",
} as const;
const EXECUTIONS = {
  ...LANGUAGE,
  outcome:
    "`success`, `program_error`, `timeout`, `memory_limit`, `output_limit`, `compile_error`, `cancelled`, `bad_request`, `manifest_error` (its language is `unknown`), `execution_error`",
} as const;

/** From 1 KiB to 256 MiB, in steps of factor four. */
const SIZE_BUCKETS = Array.from({ length: 10 }, (_, at) => 1024 * 4 ** at);

const API = ["api"] as const;
const FILE_SERVER = ["file-server"] as const;
const WORKER = ["worker"] as const;
const RUNNER = ["runner"] as const;
const GATEWAY = ["egress-gateway"] as const;
const TOOL_CALL_SERVER = ["tool-call-server"] as const;

export const METRICS = {
  svc_build_info: {
    type: "gauge",
    components: EVERY,
    help: "1, with the version and the commit of the running code.",
    labels: { version: "of all packages", commit: "first digits; `unknown` where there is no clone" },
  },
  svc_tls_certificate_begin_timestamp_seconds: {
    type: "gauge",
    components: EVERY,
    help: "When the certificate that the component shows began to be valid.",
    labels: {},
    needs: "SVC_TLS_CERT_FILE",
  },
  svc_tls_certificate_expiry_timestamp_seconds: {
    type: "gauge",
    components: EVERY,
    help: "When the certificate that the component shows expires.",
    labels: {},
    needs: "SVC_TLS_CERT_FILE",
  },
  svc_stage_seconds: {
    type: "histogram",
    components: ["api", "worker", "runner"],
    help: "What each stage of an execution took, in seconds; stages do not overlap, and one that failed counts too.",
    labels: {
      stage:
        "api: `authorize` (credentials, limits, checks, owners of files; the body's arrival is not counted); worker: `queue` (until a worker takes it), `grant`; runner: `queue` (until a slot is free), `setup` (jail, compiler), `stage_in` (inputs, state of a session), `run`, `collect` (what became of files), `store` (outputs, state of a session)",
    },
    buckets: STAGE_BUCKETS,
  },
  svc_http_requests_total: {
    type: "counter",
    components: ["api", "file-server"],
    help: "HTTP requests by method, route pattern and status (499: the client left).",
    labels: HTTP,
  },
  svc_http_request_duration_seconds: {
    type: "histogram",
    components: ["api", "file-server"],
    help: "Duration of HTTP requests in seconds.",
    labels: HTTP,
    buckets: HTTP_BUCKETS,
  },
  svc_jobs_submitted_total: {
    type: "counter",
    components: API,
    help: "Executions, and rounds of programs with tools, that were handed to the queues.",
    labels: LANGUAGE,
  },
  svc_auth_failures_total: {
    type: "counter",
    components: API,
    help: "Requests refused with 401, by what was wrong with their credentials.",
    labels: { reason: "cause, such as `missing`, `expired`, `bad_signature`, `unknown_api_key`, `revoked`" },
  },
  svc_rate_limited_total: {
    type: "counter",
    components: API,
    help: "Requests refused with 429, by what limited them.",
    labels: {
      scope:
        "`executions`, `resumes`, `uploads`, `downloads`, `fetches`, `concurrent_executions`, `concurrent_rounds`, `open_bodies`, `open_transfers`, `open_waits`, `unfinished_jobs`, `stored_bytes`",
    },
  },
  svc_file_uploads_total: {
    type: "counter",
    components: API,
    help: "Uploaded files by outcome.",
    labels: TRANSFERS,
  },
  svc_file_downloads_total: {
    type: "counter",
    components: API,
    help: "Downloads by outcome.",
    labels: TRANSFERS,
  },
  svc_quota_refusals_total: {
    type: "counter",
    components: FILE_SERVER,
    help: "Files and states of sessions that were not stored because their principal's quota of bytes or objects had no room.",
    labels: { kind: STORED_KINDS, resource: ["bytes", "objects"] },
  },
  svc_quota_stored_bytes: {
    type: "gauge",
    components: FILE_SERVER,
    help: "Bytes that all principals together have stored, as the last sweep counted them. 0 where the kind has no quota.",
    labels: { kind: STORED_KINDS },
  },
  svc_quota_stored_objects: {
    type: "gauge",
    components: FILE_SERVER,
    help: "Objects that all principals together have stored, as the last sweep counted them. 0 where the kind has no quota.",
    labels: { kind: STORED_KINDS },
  },
  svc_ptc_replay_continuations_total: {
    type: "counter",
    components: API,
    help: "Resumes of programs with tools, by how the program went on and what came of it.",
    labels: {
      mode: ["live", "replay"],
      outcome: ["paused", "completed", "error", "client_error", "retryable_error"],
    },
  },
  svc_ptc_replay_lock_contention_total: {
    type: "counter",
    components: API,
    help: "Resumes that met another one of the same pause in flight.",
    labels: {},
  },
  svc_ptc_replay_state_oversize_total: {
    type: "counter",
    components: API,
    help: "Refusals because of size: of the stored state, of all results, of one result.",
    labels: { kind: ["state", "history", "result"] },
  },
  svc_queue_jobs: {
    type: "gauge",
    components: WORKER,
    help: "Jobs in the queues, asked of Redis at each scrape; absent while Redis does not answer. Every worker tells the same.",
    labels: { queue: QUEUES, state: ["waiting", "active", "delayed"] },
  },
  svc_queue_wait_seconds: {
    type: "histogram",
    components: WORKER,
    help: "Time from the submission of a job that a caller waits for until a worker took it, in seconds.",
    labels: { queue: QUEUES },
    buckets: STAGE_BUCKETS,
  },
  svc_worker_running: {
    type: "gauge",
    components: WORKER,
    help: "1 while the consumer of a queue is running and Redis answers.",
    labels: { worker_type: ["python", "other"] },
  },
  svc_worker_runners: {
    type: "gauge",
    components: WORKER,
    help: "Runners that the worker knows: ready, busy (no slot free), or away (left out until they answer again).",
    labels: { state: ["ready", "busy", "away"] },
  },
  svc_active_jobs: {
    type: "gauge",
    components: WORKER,
    help: "Jobs in work, counted at each scrape.",
    labels: LANGUAGE,
  },
  svc_jobs_completed_total: {
    type: "counter",
    components: WORKER,
    help: "Jobs that ended with an answer, whatever became of the program; canaries too.",
    labels: LANGUAGE,
  },
  svc_jobs_failed_total: {
    type: "counter",
    components: WORKER,
    help: "Jobs that ended with an error instead of an answer.",
    labels: LANGUAGE,
  },
  svc_jobs_cancelled_total: {
    type: "counter",
    components: WORKER,
    help: "Jobs that were cancelled, as when their client left.",
    labels: LANGUAGE,
  },
  svc_job_processing_duration_seconds: {
    type: "histogram",
    components: WORKER,
    help: "Time from a job's start to its end in seconds.",
    labels: LANGUAGE,
    buckets: JOB_BUCKETS,
  },
  svc_canary_last_success_timestamp_seconds: {
    type: "gauge",
    components: WORKER,
    help: "Time of the last execution that went through queue, worker and jail; of two queues the older one.",
    labels: {},
  },
  svc_sandbox_http_requests_total: {
    type: "counter",
    components: RUNNER,
    help: "HTTP requests by method, route pattern and status (499: the client left).",
    labels: HTTP,
  },
  svc_sandbox_http_request_duration_seconds: {
    type: "histogram",
    components: RUNNER,
    help: "Duration of HTTP requests in seconds.",
    labels: HTTP,
    buckets: HTTP_BUCKETS,
  },
  svc_sandbox_executions_total: {
    type: "counter",
    components: RUNNER,
    help: "Executions by language and outcome. One that was refused before it began, as while all slots are busy, is none; each installed language has all outcomes from the start, at 0.",
    labels: EXECUTIONS,
  },
  svc_sandbox_execution_duration_seconds: {
    type: "histogram",
    components: RUNNER,
    help: "Duration of executions in seconds, pauses not counted.",
    labels: EXECUTIONS,
    buckets: JOB_BUCKETS,
  },
  svc_sandbox_active_executions: {
    type: "gauge",
    components: RUNNER,
    help: "Executions that have a slot, and programs that are paused, counted at each scrape.",
    labels: { state: ["running", "paused"] },
  },
  svc_sandbox_slots: {
    type: "gauge",
    components: RUNNER,
    help: "Slots of the runner, counted at each scrape; a paused program has none.",
    labels: { state: ["busy", "free"] },
  },
  svc_sandbox_starts_total: {
    type: "counter",
    components: RUNNER,
    help: "Programs that began, warm or cold.",
    labels: { start: ["warm", "cold"] },
  },
  svc_sandbox_warm_jails: {
    type: "gauge",
    components: RUNNER,
    help: "Jails that wait warm for a program, and how many are wanted.",
    labels: { zygote: "interpreter", number: ["waiting", "wanted"] },
  },
  svc_launcher_guests: {
    type: "gauge",
    components: RUNNER,
    help: "MicroVMs by what they do, where KVM_ENABLED is set.",
    labels: { state: ["booting", "ready", "busy", "paused", "ending"] },
    needs: "KVM_ENABLED",
  },
  svc_launcher_boot_seconds: {
    type: "histogram",
    components: RUNNER,
    help: "Time from a microVM's start until it takes runs, in seconds.",
    labels: {},
    buckets: [0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120],
    needs: "KVM_ENABLED",
  },
  svc_launcher_guests_ended_total: {
    type: "counter",
    components: RUNNER,
    help: "MicroVMs that were ended, by cause.",
    labels: {
      cause: ["served", "age", "boot", "lost", "failed", "evicted", "shutdown"],
    },
    needs: "KVM_ENABLED",
  },
  svc_sandbox_jail_setup_gate_watchdog_fires_total: {
    type: "counter",
    components: RUNNER,
    help: "Jails that were not ready in time; should stay 0.",
    labels: {},
  },
  svc_ptc_live_evictions_total: {
    type: "counter",
    components: RUNNER,
    help: "Paused programs that were killed, by cause.",
    labels: { cause: ["timeout", "max_paused", "max_paused_per_principal", "memory", "unanswerable"] },
  },
  svc_runner_input_cache_hits_total: {
    type: "counter",
    components: RUNNER,
    help: "Large inputs that came from a copy on the runner.",
    labels: {},
  },
  svc_runner_input_cache_misses_total: {
    type: "counter",
    components: RUNNER,
    help: "Large inputs that were fetched.",
    labels: {},
  },
  svc_runner_input_cache_bytes: {
    type: "gauge",
    components: RUNNER,
    help: "Size of all copies of inputs on the runner.",
    labels: {},
  },
  svc_egress_requests_total: {
    type: "counter",
    components: GATEWAY,
    help: "Requests to the gateway, by what became of them and why.",
    labels: {
      route: "pattern of the route, or `unmatched`",
      outcome: "`answered`, `refused` (4xx), `failed` (5xx), `left` (the caller went away)",
      reason: "code of docs/errors.md, or `none`",
    },
  },
  svc_egress_ledger_conflicts_total: {
    type: "counter",
    components: GATEWAY,
    help: "Changes of a grant's record that another gateway's change overtook, and that were made again.",
    labels: {},
  },
  svc_tool_calls_total: {
    type: "counter",
    components: TOOL_CALL_SERVER,
    help: "Tool calls, repeats not counted.",
    labels: {},
  },
  svc_tool_call_timeouts_total: {
    type: "counter",
    components: TOOL_CALL_SERVER,
    help: "Tool calls that got no result in time.",
    labels: {},
  },
  svc_session_state_total: {
    type: "counter",
    components: WORKER,
    needs: "SVC_PERSIST_SESSIONS",
    help: "Runs of sessions that have an answer, by what it says of the state. `unchanged`: the run left what it began with; `restore_failed`: it began with an empty workspace; `not_saved`: all else, as after a limit's kill, with a state that is too large or could not be stored, or in a session that was deleted meanwhile.",
    labels: { outcome: ["saved", "unchanged", "conflict", "restore_failed", "not_saved"] },
  },
  svc_session_state_bytes: {
    type: "histogram",
    components: WORKER,
    needs: "SVC_PERSIST_SESSIONS",
    help: "Sizes of the states of sessions that were saved, in bytes as they are stored.",
    labels: {},
    buckets: SIZE_BUCKETS,
  },
  svc_tool_call_active_sessions: {
    type: "gauge",
    components: TOOL_CALL_SERVER,
    help: "Exchanges of programs with tools, counted in Redis at each scrape: every server tells the same. Not a number while Redis does not answer.",
    labels: {},
  },
} as const satisfies Record<`svc_${string}`, MetricDefinition>;

export type MetricName = keyof typeof METRICS;
