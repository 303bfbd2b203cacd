/**
 * Hands jobs to the workers and waits for their results. A lost announcement costs one poll; polls also notice that a job has started.
 * When Redis refuses writes, as on a full disk, it cannot store results, so the producer soon gives its jobs up. Deadlines: a job that
 * does not start within JOB_QUEUE_WAIT_MS is removed and never runs; a started job is cancelled at the API's deadline, which
 * begins after that wait; a client that leaves cancels its job at once. Redis may still execute a failed command when it is back. So after a failed add or
 * removal, the producer sends a cancellation behind it.
 */
import { deadlinesFor, findLanguage, type Job, type JobResult, newId, ServiceError } from "@svc/contracts";
import {
  Condition,
  type Config,
  errorText,
  type Log,
  type Redis,
  refusesWrites,
  sendCancellation,
  storeCall,
} from "@svc/service-kit";
import { EventFeed } from "./events.ts";
import type { KeptJob } from "./kept-jobs.ts";
import { isFurtherRound, isOfPausedProgram, JOB_CANCELLATIONS, jobIdOf, type Place } from "./protocol.ts";
import { type JobQueue, type JobQueues, type JobState, openQueues } from "./queue.ts";

const POLL_MS = 2000;
const RETRY_SECONDS = "5";
/** This long after the longest wait in the queue, nobody waits for a job any more, however slow Redis was. */
const LATE_MS = 60_000;
const FULL =
  "Too many executions wait or run already; this one was not started, and it is safe to repeat it.";
/** A job is lost after this many polls in a row in which it neither waits, runs nor has a result, or in which Redis refuses writes. */
const LOST_AFTER_POLLS = 2;

/** This process stops. A job that goes on with a program continues, and its result is kept for a repeated request. Others are cancelled. */
export class ProducerStopped extends ServiceError {
  constructor() {
    super("shutting_down");
  }
}

/** A job that was sent to Redis. */
interface Sent {
  id: string;
  queue: JobQueue;
}

/** A job whose result this process waits for. */
interface Waited extends Sent {
  job: Job;
  place: Place;
  /** Notified when the result is in the store. */
  announced: Condition;
  left: AbortSignal;
  /** When the job was in the queue, by `performance.now()`. */
  began: number;
  /** When the job started, by `performance.now()`; undefined until this process knows that it started. */
  startedAt?: number;
}

export class JobProducer {
  readonly #config: Config;
  readonly #log: Log;
  readonly #redis: Redis;
  readonly #queues: JobQueues;
  readonly #channel = `svc:results:${newId()}`;
  readonly #announced = new Map<string, Condition>();
  /** How many jobs in progress do not have the place `first`. */
  #numbered = 0;
  /** The events of jobs that have events. */
  readonly feed: EventFeed;
  #isStopped = false;

  constructor(config: Config, log: Log, redis: Redis) {
    this.#config = config;
    this.#log = log;
    this.#redis = redis;
    this.#queues = openQueues(redis, log);
    this.feed = new EventFeed(redis);
  }

  async listen(subscriber: Redis): Promise<void> {
    subscriber.on("message", (channel: string, id: string) => {
      if (channel === this.#channel) this.#announced.get(id)?.notify();
    });
    this.feed.listen(subscriber);
    await subscriber.subscribe(this.#channel);
  }

  /** Throws when this process has too many jobs in progress. Jobs with the place `first` are never refused and do not count. */
  refuseWhenFull(): void {
    const { JOB_QUEUE_LIMIT: most } = this.#config;
    if (most > 0 && this.#numbered >= most) throw saturated(FULL);
  }

  /**
   * Adds a job and waits for its end; only waits when a job of this id is already in the queue. Aborting `left` cancels the job.
   * With too many jobs in progress, it refuses a job at once unless its place is `first`.
   */
  async run(job: Job, left: AbortSignal, place: Place = 1): Promise<JobResult> {
    left.throwIfAborted();
    if (place !== "first") this.refuseWhenFull();
    const id = jobIdOf(job);
    const queue = this.#queueOf(job);
    const awaited = { replyTo: this.#channel, startWithinMs: this.#startMs };
    const announced = new Condition();
    const counts = place === "first" ? 0 : 1;
    this.#announced.set(id, announced);
    this.#numbered += counts;
    try {
      await this.#orCancel({ id, queue }, () => queue.add(job, { place, awaited }));
      return await this.#wait({ job, place, id, queue, announced, left, began: performance.now() });
    } finally {
      this.#announced.delete(id);
      this.#numbered -= counts;
    }
  }

  /** Time from sending a job in which it may start. Its cancellation mark is kept as long. */
  get #startMs(): number {
    return this.#config.JOB_QUEUE_WAIT_MS + LATE_MS;
  }

  /** Queues a kept job, which no caller waits for. */
  async submit(job: Job, place: Place): Promise<void> {
    const queue = this.#queueOf(job);
    await this.#orCancel({ id: jobIdOf(job), queue }, () => queue.add(job, { place }));
  }

  /** The state of a kept job in its queue. */
  async look({ language, id }: Pick<KeptJob, "language" | "id">): Promise<JobState["state"]> {
    return storeCall(async () => (await this.#queueOf({ language }).look(id)).state);
  }

  /** Removes a job from its queue, or tells its worker to end it; this process need not wait for it. A missing job will not start later. */
  async cancel(id: string): Promise<void> {
    await storeCall(() => sendCancellation(this.#redis, JOB_CANCELLATIONS, id, this.#startMs));
    const queues = Object.values(this.#queues);
    await storeCall(() => Promise.all(queues.map((queue) => queue.withdraw(id))));
  }

  /** Whether the job waits, runs, has just failed in the queue, or belongs to a further round that has just ended. */
  async exists(job: Job): Promise<boolean> {
    return storeCall(() => this.#queueOf(job).exists(jobIdOf(job)));
  }

  #queueOf({ language }: Pick<Job, "language">): JobQueue {
    return this.#queues[findLanguage(language)?.queue ?? "other"];
  }

  async #wait(waited: Waited): Promise<JobResult> {
    const { job, announced, left, began } = waited;
    const { api: runMs } = deadlinesFor(job.run_timeout, this.#config);
    for (let missed = 0; ; ) {
      const startBy = began + this.#config.JOB_QUEUE_WAIT_MS;
      // Its worker may wait for a runner until then, and the time of the run begins after that.
      const limit = waited.startedAt === undefined ? startBy : Math.max(waited.startedAt, startBy) + runMs;
      const ms = Math.min(POLL_MS, Math.max(0, limit - performance.now()));
      const isAnnounced = await announced.wait({ ms, signal: left });
      if (!isAnnounced && left.aborted) {
        await this.#cancel(waited);
        throw new ServiceError("execution_cancelled");
      }
      if (this.#isStopped) await this.#leave(waited);
      if (!isAnnounced && performance.now() >= limit) await this.#expire(waited);
      const seen = await this.#look(waited);
      if (seen?.state === "ended") {
        if (!isFurtherRound(job)) void this.#forget(waited);
        return seen.result;
      }
      if (seen?.state === "started") waited.startedAt ??= localStart(seen.at, waited);
      missed = seen?.state === "gone" ? missed + 1 : 0;
      if (missed < LOST_AFTER_POLLS) continue;
      await this.#cancel(waited);
      throw lost(job);
    }
  }

  /** Undefined when Redis fails. `gone` also when Redis refuses writes, because then it will never have the job's result. */
  async #look({ id, queue }: Waited): Promise<JobState | undefined> {
    try {
      const seen = await queue.look(id);
      if (seen.state === "ended" || !(await refusesWrites(this.#redis))) return seen;
      this.#log.warn({ job: id }, "the store takes no writes");
      return { state: "gone" };
    } catch (error) {
      this.#log.warn({ err: errorText(error), job: id }, "looking up a job failed");
      return undefined;
    }
  }

  /** Ends the wait because the process stops, unless the result is already there. */
  async #leave(waited: Waited): Promise<void> {
    if ((await this.#look(waited))?.state === "ended") return;
    if (waited.place !== "first") await this.#cancel(waited);
    throw new ProducerStopped();
  }

  /** Handles a passed deadline. Returns only when the job turns out to have started in time; it may have ended by now. */
  async #expire(waited: Waited): Promise<void> {
    const { id, queue } = waited;
    if (waited.startedAt !== undefined) {
      await this.#cancel(waited);
      throw new ServiceError("execution_timeout");
    }
    const withdrawn = await this.#orCancel(waited, () => queue.withdraw(id));
    if (withdrawn.state === "removed") throw saturated();
    if (withdrawn.state === "started") waited.startedAt = localStart(withdrawn.at, waited);
  }

  /** Redis may still execute a failed command when it is back. So the cancellation of the job is sent after the command. */
  async #orCancel<T>(sent: Sent, operation: () => Promise<T>): Promise<T> {
    try {
      return await storeCall(operation);
    } catch (error) {
      void this.#cancel(sent);
      throw error;
    }
  }

  /** Never rejects. Redis may still execute these commands after a failure, too. */
  async #cancel({ id, queue }: Sent): Promise<void> {
    try {
      await Promise.all([
        sendCancellation(this.#redis, JOB_CANCELLATIONS, id, this.#startMs),
        queue.withdraw(id),
      ]);
    } catch (error) {
      this.#log.warn({ err: errorText(error), job: id }, "cancelling a job failed");
    }
  }

  /** Removes a result that nobody else reads. If that fails, the result expires. */
  async #forget({ id, queue }: Waited): Promise<void> {
    try {
      await queue.forgetResult(id);
    } catch (error) {
      this.#log.debug({ err: errorText(error), job: id }, "removing a result failed");
    }
  }

  /** Ends all waits: `run` throws ProducerStopped from now on, unless the result is already there. */
  stop(): void {
    this.#isStopped = true;
    for (const announced of this.#announced.values()) announced.notify();
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#queues).map((queue) => queue.close()));
  }
}

/** The code's default message is for a job that has waited in the queue. */
const saturated = (message?: string) =>
  new ServiceError("queue_saturated", message, { headers: { "retry-after": RETRY_SECONDS } });

/**
 * The start of a job, by `performance.now()`. `at`: ms since 1970, by the clock of a worker. The start is never before `began`, so a
 * worker's clock that is behind costs a job no time. A job that was already running then gets its full time again.
 */
function localStart(at: number, { began }: Pick<Waited, "began">): number {
  return Math.max(began, performance.now() - Math.max(0, Date.now() - at));
}

/** The error for a lost job. A run has no effect but its result, so the caller may repeat it. The API replays a lost paused program. */
function lost(job: Job): ServiceError {
  return isOfPausedProgram(job)
    ? new ServiceError("sandbox_execution_failed", undefined, { cause: "the job is lost" })
    : new ServiceError("store_unavailable", "The state store lost the execution; it may be repeated.");
}
