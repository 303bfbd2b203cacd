/**
 * Hands jobs to the queues and waits for their answers. An answer comes as a notice over Redis; a lost notice costs one
 * poll, and polls tell that a job has started. Deadlines: a job that does not start in JOB_QUEUE_WAIT_MS is removed and never runs; a started one is cancelled
 * at the API's deadline; a client that leaves cancels its job at once.
 */
import {
  answerKey,
  CANCEL_CHANNEL,
  deadlinesFor,
  findLanguage,
  type Job,
  type JobNotice,
  type JobResult,
  jobIdOf,
  newId,
  QUEUE_NAMES,
  QUEUE_OPTIONS,
  ServiceError,
} from "@svc/contracts";
import { type Config, type Log, type Redis, storeCall } from "@svc/service-kit";
import { Queue } from "bullmq";
import { PendingJob } from "./pending.ts";
import { ReadJobs } from "./read-jobs.ts";

const POLL_MS = 2000;
/** How long an ended job stays whose answer may still be looked for. */
const KEEP_SECONDS = 120;
/** A job that is neither in the queue nor answered in this many polls was lost with the store. */
const LOST_AFTER_POLLS = 2;

export class Jobs {
  readonly #config: Config;
  readonly #log: Log;
  readonly #redis: Redis;
  readonly #queues: { python: Queue; other: Queue };
  readonly #channel = `svc:answers:${newId()}`;
  readonly #pending = new Map<string, PendingJob>();
  readonly #readJobs = new ReadJobs();

  constructor(config: Config, log: Log, redis: Redis) {
    this.#config = config;
    this.#log = log;
    this.#redis = redis;
    const queue = (name: string) => {
      const created = new Queue(name, { connection: redis as never, ...QUEUE_OPTIONS });
      created.on("error", (error) => log.debug({ err: error.message, queue: name }, "queue error"));
      return created;
    };
    this.#queues = { python: queue(QUEUE_NAMES.python), other: queue(QUEUE_NAMES.other) };
  }

  async listen(subscriber: Redis): Promise<void> {
    subscriber.on("message", (channel: string, text: string) => {
      if (channel !== this.#channel) return;
      const notice = JSON.parse(text) as JobNotice;
      this.#pending.get(notice.job)?.finish(notice.result);
    });
    await subscriber.subscribe(this.#channel);
  }

  /**
   * Runs a job to its end. Aborting `left` cancels it. A job that is in the queue already is not queued again: its end is
   * waited for. `first`: ahead of the jobs that wait.
   */
  async run(
    job: Omit<Job, "reply_to">,
    left: AbortSignal,
    { first = false }: { first?: boolean } = {},
  ): Promise<JobResult> {
    left.throwIfAborted();
    const pending = new PendingJob();
    const id = jobIdOf(job);
    this.#pending.set(id, pending);
    try {
      const queue = this.#queueOf(job);
      const removal = { age: KEEP_SECONDS };
      await storeCall(() =>
        queue.add(
          "exec",
          { ...job, reply_to: this.#channel },
          { jobId: id, attempts: 1, lifo: first, removeOnComplete: removal, removeOnFail: removal },
        ),
      );
      const result = await this.#wait(job, queue, pending, left);
      // A round of a program has an id of its own, by which another replica may look for it.
      if (job.job_id === undefined) this.#readJobs.add(queue, id);
      return result;
    } finally {
      this.#pending.delete(id);
    }
  }

  #queueOf(job: Omit<Job, "reply_to">): Queue {
    return this.#queues[findLanguage(job.language)?.queue ?? "other"];
  }

  /** Whether the job is known to its queue: waiting, running or just ended. */
  async exists(job: Omit<Job, "reply_to">): Promise<boolean> {
    return (await storeCall(() => this.#queueOf(job).getJobState(jobIdOf(job)))) !== "unknown";
  }

  async #wait(
    job: Omit<Job, "reply_to">,
    queue: Queue,
    pending: PendingJob,
    left: AbortSignal,
  ): Promise<JobResult> {
    const id = jobIdOf(job);
    const began = performance.now();
    const apiMs = deadlinesFor(job.run_timeout, this.#config).api;
    let missed = 0;
    for (;;) {
      const limit =
        pending.startedAt === undefined ? began + this.#config.JOB_QUEUE_WAIT_MS : pending.startedAt + apiMs;
      const wait = Math.min(POLL_MS, Math.max(0, limit - performance.now()));
      const event = await pending.next(wait, left);
      if (pending.result !== undefined) return pending.result;
      if (event === "left") {
        await this.#cancel(queue, id);
        throw new ServiceError("execution_cancelled");
      }
      if (event === "changed") continue;
      if (performance.now() >= limit) {
        if (pending.startedAt !== undefined) {
          await this.#cancel(queue, id);
          throw new ServiceError("execution_timeout");
        }
        const startedAt = await this.#removeQueued(queue, id);
        if (startedAt === undefined) {
          throw new ServiceError("queue_saturated", undefined, { headers: { "retry-after": "5" } });
        }
        pending.start(startedAt);
      } else {
        const found = await this.#poll(queue, id, pending);
        missed = found ? 0 : missed + 1;
        if (missed >= LOST_AFTER_POLLS) {
          throw new ServiceError(
            "store_unavailable",
            "The state store lost the execution; it may be repeated.",
          );
        }
      }
    }
  }

  /** Looks for an answer whose notice was lost. False when the job is nowhere to be found. */
  async #poll(queue: Queue, id: string, pending: PendingJob): Promise<boolean> {
    try {
      const kept = await this.#redis.get(answerKey(id));
      if (kept !== null) {
        pending.finish(JSON.parse(kept) as JobResult);
        return true;
      }
      const job = await queue.getJob(id);
      if (job === undefined) return false;
      if (job.finishedOn !== undefined) pending.finish((job.returnvalue as JobResult | null) ?? broken());
      else if (job.processedOn !== undefined) pending.start(job.processedOn);
      return true;
    } catch (error) {
      this.#log.warn({ err: (error as Error).message }, "a job could not be looked up");
      return true;
    }
  }

  /** Takes a job out of the queue before it starts; otherwise says when it has started. */
  async #removeQueued(queue: Queue, id: string): Promise<number | undefined> {
    return storeCall(async () => {
      const job = await queue.getJob(id);
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

  async #cancel(queue: Queue, id: string): Promise<void> {
    try {
      await this.#redis.publish(CANCEL_CHANNEL, id);
      await this.#removeQueued(queue, id);
    } catch (error) {
      this.#log.warn(
        { err: (error as Error).message, execution: id },
        "a cancellation could not be delivered",
      );
    }
  }

  async close(): Promise<void> {
    this.#readJobs.close();
    await Promise.all([this.#queues.python.close(), this.#queues.other.close()]);
  }
}

const broken = (): JobResult => {
  const { code, status, message } = new ServiceError("sandbox_execution_failed");
  return { ok: false, error: { code, status, message } };
};
