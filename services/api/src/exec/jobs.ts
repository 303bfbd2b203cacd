/**
 * Hands jobs to the workers and waits for their answers: through the queues, or, where nothing is lost with a job, by a
 * shorter way (`live-jobs.ts`). An answer comes as a notice over Redis; a lost notice costs one poll, and polls tell that a
 * job has started. Deadlines: a job that does not start in JOB_QUEUE_WAIT_MS is removed and never runs; a started one is
 * cancelled at the API's deadline; a client that leaves cancels its job at once.
 */
import {
  deadlinesFor,
  findLanguage,
  isLiveJob,
  type Job,
  type JobNotice,
  type JobResult,
  jobIdOf,
  newId,
  type QueueKind,
  ServiceError,
} from "@svc/contracts";
import { type Config, type Log, type Redis, storeCall } from "@svc/service-kit";
import { LiveJobs } from "./live-jobs.ts";
import { PendingJob } from "./pending.ts";
import { QueuedJobs } from "./queued-jobs.ts";
import { ReadJobs } from "./read-jobs.ts";
import type { JobWay } from "./way.ts";

/** A job that is neither waiting nor in work nor answered in this many polls was lost. */
const LOST_AFTER_POLLS = 2;

interface Ways {
  queue: QueuedJobs;
  live: LiveJobs;
}

export class Jobs {
  readonly #config: Config;
  readonly #log: Log;
  readonly #ways: Record<QueueKind, Ways>;
  readonly #channel = `svc:answers:${newId()}`;
  readonly #pending = new Map<string, PendingJob>();
  readonly #readJobs = new ReadJobs();

  constructor(config: Config, log: Log, redis: Redis) {
    this.#config = config;
    this.#log = log;
    const ways = (kind: QueueKind): Ways => ({
      queue: new QueuedJobs(kind, redis, log),
      live: new LiveJobs(kind, redis, config.JOB_QUEUE_WAIT_MS),
    });
    this.#ways = { python: ways("python"), other: ways("other") };
  }

  async listen(subscriber: Redis): Promise<void> {
    subscriber.on("message", (channel: string, text: string) => {
      if (channel === this.#channel) this.#onNotice(text);
    });
    await subscriber.subscribe(this.#channel);
  }

  /** Never throws: a notice that cannot be read is like one that was lost. */
  #onNotice(text: string): void {
    try {
      const { job, result } = JSON.parse(text) as JobNotice;
      if (typeof result.ok === "boolean") this.#pending.get(job)?.finish(result);
    } catch (error) {
      this.#log.warn({ err: (error as Error).message }, "notice of a job could not be read");
    }
  }

  /**
   * Runs a job to its end. Aborting `left` cancels it. A job that is known already is not sent again: its end is waited for.
   * `first`: ahead of the jobs that wait.
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
      const { queue, live } = this.#waysOf(job);
      const way = isLiveJob(job) ? live : queue;
      await storeCall(() => way.send({ ...job, reply_to: this.#channel }, { first }));
      const result = await this.#wait(job, way, pending, left);
      // A round of a program has an id of its own, by which another replica may look for it.
      if (job.job_id === undefined) this.#readJobs.add(queue.queue, id);
      return result;
    } finally {
      this.#pending.delete(id);
    }
  }

  #waysOf({ language }: Pick<Job, "language">): Ways {
    return this.#ways[findLanguage(language)?.queue ?? "other"];
  }

  /** Whether the job is known to its queue: waiting, running or just ended. */
  async exists(job: Omit<Job, "reply_to">): Promise<boolean> {
    return this.#waysOf(job).queue.exists(jobIdOf(job));
  }

  async #wait(
    job: Omit<Job, "reply_to">,
    way: JobWay,
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
      const wait = Math.min(way.pollMs, Math.max(0, limit - performance.now()));
      const event = await pending.next(wait, left);
      if (pending.result !== undefined) return pending.result;
      if (event === "left") {
        await this.#cancel(way, id);
        throw new ServiceError("execution_cancelled");
      }
      if (event === "changed") continue;
      if (performance.now() >= limit) {
        if (pending.startedAt !== undefined) {
          await this.#cancel(way, id);
          throw new ServiceError("execution_timeout");
        }
        const startedAt = await storeCall(() => way.withdraw(id));
        if (startedAt === undefined) {
          throw new ServiceError("queue_saturated", undefined, { headers: { "retry-after": "5" } });
        }
        pending.start(startedAt);
      } else {
        const found = await this.#poll(way, id, pending);
        missed = found ? 0 : missed + 1;
        if (missed >= LOST_AFTER_POLLS) {
          await this.#cancel(way, id);
          throw way.lost();
        }
      }
    }
  }

  /** Looks for an answer whose notice was lost. False when the job is nowhere to be found. */
  async #poll(way: JobWay, id: string, pending: PendingJob): Promise<boolean> {
    try {
      const seen = await way.look(id);
      if (seen.state === "ended") pending.finish(seen.result);
      else if (seen.state === "started") pending.start(seen.at);
      return seen.state !== "gone";
    } catch (error) {
      this.#log.warn({ err: (error as Error).message }, "a job could not be looked up");
      return true;
    }
  }

  async #cancel(way: JobWay, id: string): Promise<void> {
    try {
      await way.cancel(id);
    } catch (error) {
      this.#log.warn(
        { err: (error as Error).message, execution: id },
        "a cancellation could not be delivered",
      );
    }
  }

  async close(): Promise<void> {
    this.#readJobs.close();
    await Promise.all([this.#ways.python.queue.queue.close(), this.#ways.other.queue.queue.close()]);
  }
}
