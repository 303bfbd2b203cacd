/**
 * The two queues' consumers. One attempt per job, no start-rate limit; a job whose worker died is taken up once by another
 * worker. The answer goes to the waiting API process first and is kept with the job as well.
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
import { type Job as BullJob, Worker } from "bullmq";
import type { WorkerMetrics } from "./metrics.ts";

/** A worker that is gone for this long loses its jobs to another one. */
const LOCK_MS = 10_000;
const STALLED_CHECK_MS = 5000;
/** How long an answer that no process was there to take is kept. */
const ANSWER_SECONDS = 120;

export interface Consumers {
  running: () => { python: boolean; other: boolean };
  close: () => Promise<void>;
}

export function consumeQueues(
  { config, log }: Context,
  redis: Redis,
  metrics: WorkerMetrics,
  handle: (job: Job) => Promise<JobResult>,
): Consumers {
  const start = (kind: QueueKind, concurrency: number) => {
    const worker = new Worker<unknown, JobResult>(
      QUEUE_NAMES[kind],
      (bullJob) => consume(bullJob, redis, metrics, handle),
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
    return worker;
  };
  const python = start("python", config.PYTHON_CONCURRENCY);
  const other = start("other", config.OTHER_CONCURRENCY);
  return {
    running: () => ({ python: python.isRunning(), other: other.isRunning() }),
    close: async () => {
      await Promise.all([python.close(), other.close()]);
    },
  };
}

async function consume(
  bullJob: BullJob<unknown, JobResult>,
  redis: Redis,
  metrics: WorkerMetrics,
  handle: (job: Job) => Promise<JobResult>,
): Promise<JobResult> {
  const job = jobSchema.parse(bullJob.data);
  const id = jobIdOf(job);
  const end = metrics.began(job.language);
  const result = await handle(job);
  end(result.ok);
  if (job.reply_to !== undefined) void tell(redis, job.reply_to, { job: id, result });
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
