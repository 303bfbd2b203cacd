/** Jobs that go through one of the queues: they outlive the worker and a restart of the store. */
import { setImmediate as turn } from "node:timers/promises";
import {
  answerKey,
  CANCEL_CHANNEL,
  JOB_HINTS_CHANNEL,
  type Job,
  type JobResult,
  jobHint,
  jobIdOf,
  QUEUE_NAMES,
  QUEUE_OPTIONS,
  type QueueKind,
  ServiceError,
} from "@svc/contracts";
import { type Log, type Redis, storeCall } from "@svc/service-kit";
import { Queue } from "bullmq";
import type { JobWay, Seen } from "./way.ts";

/** How long an ended job stays whose answer may still be looked for. */
const REMOVAL = { age: 120 };

export class QueuedJobs implements JobWay {
  readonly pollMs = 2000;
  readonly queue: Queue;
  readonly #redis: Redis;
  readonly #hint: string;

  constructor(kind: QueueKind, redis: Redis, log: Log) {
    this.#redis = redis;
    this.#hint = jobHint("queue", kind);
    this.queue = new Queue(QUEUE_NAMES[kind], { connection: redis as never, ...QUEUE_OPTIONS });
    this.queue.on("error", (error) => log.debug({ err: error.message, queue: kind }, "queue error"));
  }

  readonly lost = () =>
    new ServiceError("store_unavailable", "The state store lost the execution; it may be repeated.");

  async send(job: Job, { first }: { first: boolean }): Promise<void> {
    const added = this.queue.add("exec", job, {
      jobId: jobIdOf(job),
      attempts: 1,
      lifo: first,
      removeOnComplete: REMOVAL,
      removeOnFail: REMOVAL,
    });
    // The queue has sent its command by the end of this turn, and the store takes commands of a connection in their order.
    await Promise.all([added, turn().then(() => this.#tell())]);
  }

  async look(id: string): Promise<Seen> {
    const kept = await this.#redis.get(answerKey(id));
    if (kept !== null) return { state: "ended", result: JSON.parse(kept) as JobResult };
    const job = await this.queue.getJob(id);
    if (job === undefined) return { state: "gone" };
    if (job.finishedOn !== undefined) {
      return { state: "ended", result: (job.returnvalue as JobResult | null) ?? broken() };
    }
    if (job.processedOn !== undefined) return { state: "started", at: job.processedOn };
    await this.#tell();
    return { state: "waiting" };
  }

  async #tell(): Promise<void> {
    await this.#redis.publish(JOB_HINTS_CHANNEL, this.#hint);
  }

  async withdraw(id: string): Promise<number | undefined> {
    return storeCall(async () => {
      const job = await this.queue.getJob(id);
      if (job === undefined) return undefined;
      if (job.processedOn !== undefined) return job.processedOn;
      try {
        await job.remove();
        return undefined;
      } catch {
        return Date.now();
      }
    });
  }

  async cancel(id: string): Promise<void> {
    await this.#redis.publish(CANCEL_CHANNEL, id);
    await this.withdraw(id);
  }

  /** Whether the job is known to the queue: waiting, running or just ended. */
  async exists(id: string): Promise<boolean> {
    return (await storeCall(() => this.queue.getJobState(id))) !== "unknown";
  }
}

const broken = (): JobResult => {
  const { code, status, message } = new ServiceError("sandbox_execution_failed");
  return { ok: false, error: { code, status, message } };
};
