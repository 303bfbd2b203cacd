/**
 * Drives one job: grant, run, answer. Infrastructure faults are retried within the worker's own deadline, which begins when a runner takes
 * the job. A runner or gateway that is briefly away is waited for. A run that broke is repeated once, since its only effects are its
 * outputs. A job that no runner takes, because all are busy or away, waits as long as it may wait for its start; a kept job, which nobody
 * waits for, goes back to the queue. A program with tools has other effects: once it may have run, only the API, which keeps its calls,
 * repeats it.
 */
import { deadlinesFor, type Job, type JobResult, type RecordedCall, ServiceError } from "@svc/contracts";
import type { StartedJob } from "@svc/job-queue";
import { DeadlineSignal, retry } from "@svc/service-kit";
import { publicAnswer } from "./answer.ts";
import { type Fault, faultOf } from "./error-classification.ts";
import { historyOf } from "./history.ts";
import { failureOf } from "./public-error.ts";
import { AWAY_MS, RetryPolicy } from "./retry-policy.ts";
import { endedRun, endOf, hasTools, type ProcessDeps, type Round } from "./round.ts";
import { sessionRound } from "./session-round.ts";

const NOT_TAKEN: ReadonlySet<Fault> = new Set(["busy", "absent"]);

export async function processJob(started: StartedJob, deps: ProcessDeps): Promise<JobResult> {
  const { job, queueMs, cancelled } = started;
  const { config, log } = deps;
  const deadlines = deadlinesFor(job.run_timeout, config);
  const within = new DeadlineSignal(cancelled, deadlines.worker);
  try {
    if (job.discard !== undefined) {
      deps.grants.drop(job);
      await deps.runner.discard(job, job.discard.runner_url);
      return { ok: true, answer: {} };
    }
    const waitMs = Math.max(AWAY_MS, job.kept === undefined ? config.JOB_QUEUE_WAIT_MS - queueMs : 0);
    const policy = new RetryPolicy(performance.now() + waitMs);
    const round = await runWithRetries(job, deadlines, within, policy, deps);
    const { job: granted, response, ofSession } = round;
    return { ok: true, answer: { ...publicAnswer(granted, response, queueMs), ...ofSession } };
  } catch (error) {
    const result = failureOf(error, cancelled, within.isLate);
    if (result.error.status >= 500)
      log.error({ request_id: job.request_id, code: result.error.code, err: error }, "job failed");
    return result;
  } finally {
    within.end();
  }
}

async function runWithRetries(
  job: Job,
  deadlines: ReturnType<typeof deadlinesFor>,
  within: DeadlineSignal,
  policy: RetryPolicy,
  deps: ProcessDeps,
): Promise<Round> {
  const { signal } = within;
  const history = job.ptc?.mode === "replay" ? await historyOf(deps.redis, job.execution_id) : undefined;
  let isUntaken = false;
  const attempt = () => {
    // No runner has taken the run yet, so its time begins now.
    if (isUntaken) within.restart();
    return runOnce(job, deadlines, signal, deps, history);
  };
  const pauseAfter = (error: unknown) => {
    const fault = faultOfRound(job, error);
    if (hasTools(job) && fault === "broken") return undefined;
    const pause = policy.pauseAfter(fault, performance.now());
    isUntaken = NOT_TAKEN.has(fault) && !policy.hasRepeated;
    if (pause !== undefined)
      deps.log.warn({ request_id: job.request_id, fault, err: error }, "retrying the run");
    return pause;
  };
  try {
    return await retry(attempt, pauseAfter, signal);
  } catch (error) {
    if (NOT_TAKEN.has(faultOfRound(job, error))) throw notTaken(job, error, policy);
    if (job.session === undefined || deps.sessions === undefined || !mayBeOfState(error)) throw error;
    deps.log.warn({ request_id: job.request_id, err: error }, "running without the state of the session");
    return sessionRound(job, deadlines, signal, { ...deps, sessions: undefined });
  }
}

/**
 * Only one runner holds a paused program. While that runner is away, the worker
 * retries briefly; then the API replays the program elsewhere.
 */
function faultOfRound(job: Job, error: unknown): Fault {
  const fault = faultOf(error);
  return fault === "absent" && job.resume !== undefined ? "away" : fault;
}

/** The error of a job that no runner took in time. A kept job, which nobody waits for, goes back to the queue. */
function notTaken(job: Job, cause: unknown, { hasRepeated }: RetryPolicy): ServiceError {
  // A repeated run may have started, so the error must not say that it never did.
  if (hasRepeated) return new ServiceError("sandbox_execution_failed", undefined, { cause });
  const isBusy = faultOf(cause) === "busy";
  return new ServiceError(
    isBusy || job.kept !== undefined ? "queue_saturated" : "sandbox_setup_failed",
    undefined,
    {
      cause,
    },
  );
}

/**
 * Whether the session's state may have caused the error: it cannot be fetched, or
 * there is no room for it. The program runs without it then.
 */
const mayBeOfState = (error: unknown) =>
  error instanceof ServiceError && ["storage_unavailable", "invalid_file_reference"].includes(error.code);

async function runOnce(
  job: Job,
  deadlines: ReturnType<typeof deadlinesFor>,
  signal: AbortSignal,
  deps: ProcessDeps,
  history: readonly RecordedCall[] | undefined,
): Promise<Round> {
  if (job.session !== undefined) return sessionRound(job, deadlines, signal, deps);
  const { grants, runner, tell } = deps;
  const { resume } = job;
  const { grant, job: granted } = await grants.take(job, deadlines, signal);
  try {
    const response =
      resume === undefined
        ? await runner.execute(granted, grant, signal, { history, tell })
        : await runner.resume(granted, resume, grant, signal, tell);
    if (!hasTools(job)) endedRun(response);
    // A replay starts again with all its inputs. Preparing grants does not delay the answer.
    if ("paused" in response && job.ptc?.mode !== "replay") {
      setImmediate(() => grants.prepare(job, deadlines, grant.grant_id));
    } else {
      grants.revoke(grant.grant_id, "completed", job.request_id);
      setImmediate(() => void grants.prepareNext(job, deadlines));
    }
    return { job: granted, response };
  } catch (error) {
    grants.revoke(grant.grant_id, endOf(signal), job.request_id);
    throw error;
  }
}
