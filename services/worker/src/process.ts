/**
 * Drives one job: grant, run, answer. Infrastructure faults are repeated inside the worker's own deadline: a runner or
 * gateway that is away for a moment is waited for, and a run that broke is made once more. A run has no effect outside
 * its outputs, so nobody notices.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  deadlinesFor,
  type ErrorCode,
  type ExecuteResponse,
  type Job,
  type JobResult,
  ServiceError,
} from "@svc/contracts";
import type { Config, Log } from "@svc/service-kit";
import { publicAnswer } from "./answer.ts";
import type { Cancels } from "./cancels.ts";
import { failureOf } from "./failure.ts";
import type { Grants } from "./grants.ts";
import type { Runner } from "./runner.ts";

export interface ProcessDeps {
  config: Config;
  log: Log;
  grants: Grants;
  runner: Runner;
  cancels: Cancels;
}

/** Faults in which the program did not start: tried again while `AWAY_MS` last. */
const NOT_STARTED: ReadonlySet<ErrorCode> = new Set([
  "runner_busy",
  "starting_up",
  "shutting_down",
  "store_unavailable",
  "upstream_unavailable",
  "upstream_timeout",
  "storage_unavailable",
  "ledger_conflict",
]);
/** Faults in which a run or its jail broke: made once more. */
const BROKEN: ReadonlySet<ErrorCode> = new Set([
  "sandbox_execution_failed",
  "sandbox_setup_failed",
  "permission_denied",
  "workspace_missing",
  "mount_failed",
  "internal_error",
]);
const AWAY_MS = 15_000;
const MAX_REPEATS = 1;
/** A broken run that ends this soon after its start most likely never reached the runner. */
const CONNECT_MS = 50;
const PAUSE_MS = { first: 100, most: 1000 } as const;

export async function processJob(job: Job, deps: ProcessDeps): Promise<JobResult> {
  const { config, cancels, log } = deps;
  const queueMs = Math.max(0, Date.now() - job.enqueued_at);
  const deadlines = deadlinesFor(job.run_timeout, config);
  const { signal: cancelled, done } = cancels.begin(job.execution_id);
  const deadline = AbortSignal.timeout(deadlines.worker);
  const signal = AbortSignal.any([cancelled, deadline]);
  try {
    const response = await runPatiently(job, deadlines, signal, deps);
    return { ok: true, answer: publicAnswer(job, response, queueMs) };
  } catch (error) {
    const result = failureOf(error, cancelled, deadline);
    if (result.error.status >= 500)
      log.error({ request_id: job.request_id, code: result.error.code, err: error }, "a job failed");
    return result;
  } finally {
    done();
  }
}

async function runPatiently(
  job: Job,
  deadlines: ReturnType<typeof deadlinesFor>,
  signal: AbortSignal,
  deps: ProcessDeps,
): Promise<ExecuteResponse> {
  const began = performance.now();
  let repeats = 0;
  for (let pause: number = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.most)) {
    const tried = performance.now();
    try {
      return await runOnce(job, deadlines, signal, deps);
    } catch (error) {
      signal.throwIfAborted();
      const code = error instanceof ServiceError ? error.code : "internal_error";
      const quick = performance.now() - tried < CONNECT_MS;
      const waitable = NOT_STARTED.has(code) || (quick && BROKEN.has(code));
      const repeatable = BROKEN.has(code) && ++repeats <= MAX_REPEATS;
      if (!repeatable && !(waitable && performance.now() - began < AWAY_MS)) throw error;
      deps.log.warn({ request_id: job.request_id, code, err: error }, "a run is repeated");
      await sleep(pause, undefined, { signal });
    }
  }
}

async function runOnce(
  job: Job,
  deadlines: ReturnType<typeof deadlinesFor>,
  signal: AbortSignal,
  { grants, runner }: ProcessDeps,
): Promise<ExecuteResponse> {
  const grant = await grants.register(job, deadlines, signal);
  try {
    const response = await runner.execute(job, grant, signal);
    grants.revoke(grant.grant_id, "completed", job.request_id);
    return response;
  } catch (error) {
    grants.revoke(grant.grant_id, endOf(signal), job.request_id);
    throw error;
  }
}

function endOf(signal: AbortSignal): "failed" | "cancelled" | "timeout" {
  if (!signal.aborted) return "failed";
  return signal.reason instanceof ServiceError ? "cancelled" : "timeout";
}
