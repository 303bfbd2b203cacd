/**
 * The consumers of the two kinds of jobs, each kind from its queue and from its list of live jobs, which goes first. Both
 * ways share the permits of the kind. No start-rate limit.
 */
import type { Job, JobResult, QueueKind } from "@svc/contracts";
import type { Context, Redis } from "@svc/service-kit";
import type { Cancels } from "./cancels.ts";
import { LiveJobs } from "./live-jobs.ts";
import type { WorkerMetrics } from "./metrics.ts";
import { Permits } from "./permits.ts";
import { QueuedJobs } from "./queued-jobs.ts";

export interface Consumers {
  running: () => { python: boolean; other: boolean };
  close: () => Promise<void>;
}

export interface ConsumersDeps {
  context: Context;
  redis: Redis;
  /** For the queues alone: commands wait for a store that is away. */
  queueRedis: Redis;
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
  { context: { log }, redis, queueRedis, subscriber, cancels, metrics, handle }: ConsumersDeps,
) {
  const permits = new Permits(concurrency);
  const work = async (job: Job): Promise<JobResult> => {
    const end = metrics.began(job.language);
    const result = await handle(job);
    end(result.ok);
    return result;
  };
  const live = new LiveJobs(kind, { redis, log, permits, work, cancel: (id) => cancels.cancel(id) });
  const queued = new QueuedJobs(kind, { redis, queueRedis, log, permits, work });
  await Promise.all([live.listen(subscriber), queued.listen(subscriber)]);
  return {
    isRunning: () => queued.isRunning,
    close: async () => {
      await Promise.all([live.close(), queued.close()]);
    },
  };
}
