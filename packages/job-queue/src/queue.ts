/**
 * The queue of one kind of jobs, in Redis. A job is added only once under its id, and a job that has started cannot be withdrawn.
 * The data of a job may be megabytes, so only its worker reads it.
 */
import type { Job, JobResult, QueueKind } from "@svc/contracts";
import { errorText, type Log, type Redis } from "@svc/service-kit";
import { Queue } from "bullmq";
import { queueConnection } from "./connection.ts";
import {
  failed,
  isFurtherRound,
  jobIdOf,
  type Place,
  QUEUE_NAMES,
  type QueuedJob,
  READ,
  RESULT_LIFE_MS,
  resultKey,
} from "./protocol.ts";
import { RedisClock } from "./redis-clock.ts";

/** How long a failed job, or the ended job of a further round, stays in the queue, so that no replica adds it again. */
const ENDED_ROUND_SECONDS = 120;
/** BullMQ's largest priority number. Jobs with lower numbers go first, and jobs without one before all others. */
const MAX_PRIORITY = 2 ** 21;
/** No one reads the events of the queue. */
const NO_EVENTS = { streams: { events: { maxLen: 0 } } };

export type JobState =
  | { state: "gone" | "waiting" }
  /** `at`: ms since 1970, by the clock of a worker. */
  | { state: "started"; at: number }
  | { state: "ended"; result: JobResult };

/** `gone`: the job has ended, or never existed. */
export type Withdrawn = { state: "removed" | "gone" } | { state: "started"; at: number };

export interface Added {
  /** 1 when it is absent. */
  place?: Place;
  /** The channel of the API process that waits for the result, and how long the job may take to start, in ms. */
  awaited?: { replyTo: string; startWithinMs: number };
}

export interface JobCounts {
  waiting: number;
  active: number;
  delayed: number;
}

export class JobQueue {
  readonly name: string;
  readonly #redis: Redis;
  readonly #log: Log;
  readonly #clock: RedisClock;
  #queue: Queue<QueuedJob, void>;

  constructor(kind: QueueKind, redis: Redis, log: Log, clock: RedisClock) {
    this.name = QUEUE_NAMES[kind];
    this.#redis = redis;
    this.#log = log;
    this.#clock = clock;
    this.#queue = this.#open();
  }

  #open(): Queue<QueuedJob, void> {
    const queue = new Queue<QueuedJob, void>(this.name, {
      connection: queueConnection(this.#redis),
      ...NO_EVENTS,
    });
    return queue.on("error", (error) =>
      this.#log.debug({ err: errorText(error), queue: this.name }, "queue error"),
    );
  }

  /** The opened queue. BullMQ asks for Redis's version when it opens a queue. If that failed, the queue never works, so replace it. */
  async #opened(): Promise<Queue<QueuedJob, void>> {
    const queue = this.#queue;
    try {
      await queue.waitUntilReady();
    } catch (error) {
      if (this.#queue === queue) {
        this.#queue = this.#open();
        await queue.close();
      }
      throw error;
    }
    return queue;
  }

  /** Adds a job. A job with the same id that is already in the queue stays as it is. */
  async add(job: Job, { place = 1, awaited }: Added = {}): Promise<void> {
    const removed = isFurtherRound(job) ? { age: ENDED_ROUND_SECONDS } : true;
    const enqueued_at = this.#clock.now();
    const until = awaited && {
      reply_to: awaited.replyTo,
      start_by: enqueued_at + awaited.startWithinMs,
    };
    const queue = await this.#opened();
    await queue.add(
      "exec",
      { ...job, enqueued_at, ...until },
      {
        jobId: jobIdOf(job),
        attempts: 1,
        ...(place === "first" ? {} : { priority: Math.min(place, MAX_PRIORITY) }),
        removeOnComplete: removed,
        removeOnFail: { age: ENDED_ROUND_SECONDS },
      },
    );
  }

  async result(id: string): Promise<JobResult | undefined> {
    const text = await this.#redis.get(resultKey(id));
    return text === null || text === READ ? undefined : (JSON.parse(text) as JobResult);
  }

  /** Forgets a result after its only reader has it. READ stays, so that a job that its worker could not close does not run again. */
  async forgetResult(id: string): Promise<void> {
    await this.#redis.set(resultKey(id), READ, "PX", RESULT_LIFE_MS);
  }

  async look(id: string): Promise<JobState> {
    const result = await this.result(id);
    if (result !== undefined) return { state: "ended", result };
    const times = await this.#times(await this.#opened(), id);
    if (times === undefined) return { state: "gone" };
    // A job that failed in the queue itself has no result.
    if (times.ended !== undefined) return { state: "ended", result: failed("sandbox_execution_failed") };
    return times.started === undefined ? { state: "waiting" } : { state: "started", at: times.started };
  }

  /** Undefined when the job is not in the queue. Reads single fields, because BullMQ's `getJob` reads the whole job. */
  async #times(queue: Queue, id: string): Promise<{ started?: number; ended?: number } | undefined> {
    const names = ["timestamp", "processedOn", "finishedOn"];
    const [added, started, ended] = await this.#redis.hmget(queue.toKey(id), ...names);
    if (!added) return undefined;
    return { ...(started && { started: Number(started) }), ...(ended && { ended: Number(ended) }) };
  }

  /** Removes a job that has not started. */
  async withdraw(id: string): Promise<Withdrawn> {
    const queue = await this.#opened();
    const times = await this.#times(queue, id);
    if (times === undefined) return { state: "gone" };
    if (times.started !== undefined) return { state: "started", at: times.started };
    const isRemoved = (await queue.remove(id)) === 1;
    return isRemoved ? { state: "removed" } : { state: "started", at: Date.now() };
  }

  /** Whether the job waits, runs, has just failed in the queue, or belongs to a further round that has just ended. */
  async exists(id: string): Promise<boolean> {
    return (await (await this.#opened()).getJobState(id)) !== "unknown";
  }

  async counts(): Promise<JobCounts> {
    const queue = await this.#opened();
    const counts = await queue.getJobCounts("waiting", "prioritized", "active", "delayed");
    const { waiting = 0, prioritized = 0, active = 0, delayed = 0 } = counts;
    return { waiting: waiting + prioritized, active, delayed };
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}

export type JobQueues = Readonly<Record<QueueKind, JobQueue>>;

export function openQueues(redis: Redis, log: Log): JobQueues {
  const clock = new RedisClock(redis);
  return {
    python: new JobQueue("python", redis, log, clock),
    other: new JobQueue("other", redis, log, clock),
  };
}
