/** The jobs of one kind in the store. A job is added once under its id, and a job that has started cannot be withdrawn. */
import type { Job, JobResult, QueueKind } from "@svc/contracts";
import { ServiceError } from "@svc/contracts";
import { isWriteRefusal, type Log, type Redis } from "@svc/service-kit";
import { Queue } from "bullmq";
import { queueConnection } from "./connection.ts";
import { isRound, jobIdOf, type Place, QUEUE_NAMES, READ, RESULT_LIFE_MS, resultKey } from "./protocol.ts";

/** How long the job of an ended round stays in the queue, so that no replica adds it again. */
const ENDED_ROUND_SECONDS = 120;
/** BullMQ's largest priority; jobs with a lower one go before others, those without one first of all. */
const MAX_PRIORITY = 2 ** 21;
/** No one reads the events of the queue. */
const NO_EVENTS = { streams: { events: { maxLen: 0 } } };

export type JobState =
  | { state: "gone" | "waiting" }
  /** ms since 1970, by the clock of a worker. */
  | { state: "started"; at: number }
  | { state: "ended"; result: JobResult };

export interface JobCounts {
  waiting: number;
  active: number;
  delayed: number;
}

export class JobQueue {
  readonly name: string;
  readonly #redis: Redis;
  readonly #queue: Queue<Job, void>;

  constructor(kind: QueueKind, redis: Redis, log: Log) {
    this.name = QUEUE_NAMES[kind];
    this.#redis = redis;
    this.#queue = new Queue(this.name, { connection: queueConnection(redis), ...NO_EVENTS });
    this.#queue.on("error", (error) => log.debug({ err: error.message, queue: this.name }, "queue error"));
  }

  /** A job whose id is in the queue already is left as it is. */
  async add(job: Job, place: Place = 1): Promise<void> {
    const removed = isRound(job) ? { age: ENDED_ROUND_SECONDS } : true;
    await this.#queue.add("exec", job, {
      jobId: jobIdOf(job),
      attempts: 1,
      ...(place === "first" ? {} : { priority: Math.min(place, MAX_PRIORITY) }),
      removeOnComplete: removed,
      removeOnFail: { age: ENDED_ROUND_SECONDS },
    });
  }

  async result(id: string): Promise<JobResult | undefined> {
    const text = await this.#redis.get(resultKey(id));
    return text === null || text === READ ? undefined : (JSON.parse(text) as JobResult);
  }

  /** Its only reader has it. That there was one stays known: a job whose worker could not end it in the queue does not run again. */
  async forgetResult(id: string): Promise<void> {
    await this.#redis.set(resultKey(id), READ, "PX", RESULT_LIFE_MS);
  }

  async look(id: string): Promise<JobState> {
    const result = await this.result(id);
    if (result !== undefined) return { state: "ended", result };
    const job = await this.#queue.getJob(id);
    if (job === undefined) return { state: "gone" };
    if (job.finishedOn !== undefined) return { state: "ended", result: broken() };
    return job.processedOn === undefined ? { state: "waiting" } : { state: "started", at: job.processedOn };
  }

  /** Removes a job that has not started; otherwise says when it has started, ms since 1970. */
  async withdraw(id: string): Promise<number | undefined> {
    const job = await this.#queue.getJob(id);
    if (job?.processedOn !== undefined) return job.processedOn;
    try {
      await job?.remove();
      return undefined;
    } catch (error) {
      if (isWriteRefusal(error)) throw error;
      return Date.now();
    }
  }

  /** Whether the job waits, runs, or belongs to a round that has just ended. */
  async exists(id: string): Promise<boolean> {
    return (await this.#queue.getJobState(id)) !== "unknown";
  }

  async counts(): Promise<JobCounts> {
    const counts = await this.#queue.getJobCounts("waiting", "prioritized", "active", "delayed");
    const { waiting = 0, prioritized = 0, active = 0, delayed = 0 } = counts;
    return { waiting: waiting + prioritized, active, delayed };
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}

export type JobQueues = Readonly<Record<QueueKind, JobQueue>>;

export const openQueues = (redis: Redis, log: Log): JobQueues => ({
  python: new JobQueue("python", redis, log),
  other: new JobQueue("other", redis, log),
});

/** A job that failed in the queue itself has no result. */
function broken(): JobResult {
  const { code, status, message } = new ServiceError("sandbox_execution_failed");
  return { ok: false, error: { code, status, message } };
}
