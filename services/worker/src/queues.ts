/**
 * The consumers of the two kinds of jobs, each kind from its queue and from its list of live jobs; both ways share the
 * permits of the kind. One attempt per job, no start-rate limit; a queued job whose worker died is taken up once by another
 * worker. Its answer goes to the waiting API process first and is kept with the job as well.
 */
import { hostname } from "node:os";
import {
  answerKey,
  type Job,
  type JobNotice,
  type JobResult,
  jobIdOf,
  jobSchema,
  QUEUE_NAMES,
  type QueueKind,
} from "@svc/contracts";
import { type Context, createRedis, type Redis } from "@svc/service-kit";
import { type Job as BullJob, WaitingError, Worker } from "bullmq";
import type { Cancels } from "./cancels.ts";
import { LiveJobs } from "./live-jobs.ts";
import type { WorkerMetrics } from "./metrics.ts";
import { Permits } from "./permits.ts";

/** A worker that is gone for this long loses its jobs to another one. */
const LOCK_MS = 10_000;
const STALLED_CHECK_MS = 5000;
/** How long an answer that no process was there to take is kept. */
const ANSWER_SECONDS = 120;
/** How long a job from the queue waits here for a live one to end, before another worker may have it. */
const HOLD_MS = 100;

export interface Consumers {
  running: () => { python: boolean; other: boolean };
  close: () => Promise<void>;
}

export interface ConsumersDeps {
  context: Context;
  redis: Redis;
  subscriber: Redis;
  cancels: Cancels;
  metrics: WorkerMetrics;
  /** Never rejects. */
  handle: (job: Job) => Promise<JobResult>;
}

export async function startConsumers(deps: ConsumersDeps): Promise<Consumers> {
  const { config } = deps.context;
  const [python, other] = await Promise.all([
    startConsumer("python", config.PYTHON_CONCURRENCY, deps),
    startConsumer("other", config.OTHER_CONCURRENCY, deps),
  ]);
  return {
    running: () => ({ python: python.isRunning(), other: other.isRunning() }),
    close: async () => {
      await Promise.all([python.close(), other.close()]);
    },
  };
}

async function startConsumer(
  kind: QueueKind,
  concurrency: number,
  { context: { config, log }, redis, subscriber, cancels, metrics, handle }: ConsumersDeps,
) {
  const permits = new Permits(concurrency);
  const work = async (job: Job): Promise<JobResult> => {
    const end = metrics.began(job.language);
    const result = await handle(job);
    end(result.ok);
    return result;
  };
  const worker = new Worker<unknown, JobResult>(
    QUEUE_NAMES[kind],
    async (bullJob, token) => {
      while (!(await permits.takeWithin(HOLD_MS))) {
        if (await isReturned(bullJob, token, redis, worker)) {
          await permits.whenFree();
          throw new WaitingError();
        }
      }
      return consume(bullJob, redis, work).finally(() => permits.giveBack());
    },
    {
      connection: createRedis(config, log, { use: "blocking" }) as never,
      concurrency,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: 1,
      name: `${hostname()}-${process.pid}`,
    },
  );
  worker.on("error", (error) => log.warn({ err: error.message, queue: kind }, "queue error"));
  worker.on("failed", (job, error) =>
    log.error({ err: error.message, job: job?.id }, "a job failed in the queue"),
  );
  const live = new LiveJobs(kind, { redis, log, permits, work, cancel: (id) => cancels.cancel(id) });
  await live.listen(subscriber);
  return {
    isRunning: () => worker.isRunning(),
    close: async () => {
      await Promise.all([worker.close(), live.close()]);
    },
  };
}

/** Puts a job that was not begun back to the head of its queue. The handler goes on holding its place in this worker. */
async function isReturned(
  bullJob: BullJob,
  token: string | undefined,
  redis: Redis,
  worker: Worker<unknown, JobResult>,
): Promise<boolean> {
  try {
    // Who waits for it would take it for begun.
    await redis.hdel(worker.toKey(bullJob.id ?? ""), "processedOn");
    await bullJob.moveToWait(token);
    return true;
  } catch {
    return false;
  }
}

async function consume(
  bullJob: BullJob<unknown, JobResult>,
  redis: Redis,
  work: (job: Job) => Promise<JobResult>,
): Promise<JobResult> {
  const job = jobSchema.parse(bullJob.data);
  const result = await work(job);
  if (job.reply_to !== undefined) void tell(redis, job.reply_to, { job: jobIdOf(job), result });
  return result;
}

/** Hands the answer over in the background, while the queue keeps it with the job. */
async function tell(redis: Redis, channel: string, notice: JobNotice): Promise<void> {
  try {
    if ((await redis.publish(channel, JSON.stringify(notice))) > 0) return;
    await redis.set(answerKey(notice.job), JSON.stringify(notice.result), "EX", ANSWER_SECONDS);
  } catch {
    // The store is away: the answer stays with the job, where the API looks for it.
  }
}
