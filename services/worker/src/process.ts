/**
 * Drives one job: grant, run, answer. Infrastructure faults are repeated inside the worker's own deadline: a runner or
 * gateway that is away for a moment is waited for, and a run that broke is made once more. A run has no effect outside
 * its outputs, so nobody notices.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { deadlinesFor, type ExecuteResponse, type Job, type JobResult, ServiceError } from "@svc/contracts";
import type { Config, Log } from "@svc/service-kit";
import { publicAnswer } from "./answer.ts";
import type { Cancels } from "./cancels.ts";
import { failureOf } from "./failure.ts";
import { faultOf } from "./faults.ts";
import type { Grants } from "./grants.ts";
import { Patience } from "./patience.ts";
import type { Runner } from "./runner.ts";

export interface ProcessDeps {
  config: Config;
  log: Log;
  grants: Grants;
  runner: Runner;
  cancels: Cancels;
}

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
  const patience = new Patience();
  for (;;) {
    try {
      return await runOnce(job, deadlines, signal, deps);
    } catch (error) {
      signal.throwIfAborted();
      const fault = faultOf(error);
      const pause = patience.after(fault, performance.now());
      if (pause === undefined) throw error;
      deps.log.warn({ request_id: job.request_id, fault, err: error }, "a run is repeated");
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
