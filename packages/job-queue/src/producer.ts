/**
 * Hands jobs to the workers and waits for their results. A lost announcement costs one poll, and polls find that a job has
 * started. A store that takes no writes, as on a full disk, can keep no result: its jobs are given up soon. Deadlines: a job that does
 * not start in JOB_QUEUE_WAIT_MS is removed and never runs; a started one is cancelled at the API's deadline, which begins after that
 * wait; a client that leaves cancels its job at once. A command that failed may still be done when the store is back: a job whose add or
 * removal failed is cancelled by what is sent behind it.
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
/** So long after its time in the queue nobody waits for a job any more, however slow the store was. */
const LATE_MS = 60_000;
const FULL =
  "Too many executions wait or run already; this one was not started, and it is safe to repeat it.";
/** A job that neither waits nor runs nor has a result in this many polls was lost, as is one whose store took no write in them. */
const LOST_AFTER_POLLS = 2;

/** This process ends. A job that goes on with a program goes on, and is there for who asks for it again; any other is cancelled. */
export class ProducerStopped extends ServiceError {
  constructor() {
    super("shutting_down");
  }
}

/** A job in the store. */
interface Sent {
  id: string;
  queue: JobQueue;
}

/** A job that is waited for. */
interface Waited extends Sent {
  job: Job;
  place: Place;
  /** Notified when the result is in the store. */
  announced: Condition;
  left: AbortSignal;
  /** By `performance.now()`: the job was in the queue. */
  began: number;
  /** By `performance.now()`; undefined until the job is known to have started. */
  startedAt?: number;
}

export class JobProducer {
  readonly #config: Config;
  readonly #log: Log;
  readonly #redis: Redis;
  readonly #queues: JobQueues;
  readonly #channel = `svc:results:${newId()}`;
  readonly #announced = new Map<string, Condition>();
  /** Of these, the ones that are not first. */
  #numbered = 0;
  /** What the jobs write that are to be read while they run. */
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

  /** Throws when this process has too many jobs in hand for another one. Those that are first do not count, as they are not refused. */
  refuseWhenFull(): void {
    const { JOB_QUEUE_LIMIT: most } = this.#config;
    if (most > 0 && this.#numbered >= most) throw saturated(FULL);
  }

  /**
   * Runs a job to its end; one whose id is in the queue already is only waited for. Aborting `left` cancels it. With too many jobs in hand
   * one that is not first is refused at once.
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

  /** Counted from when a job was sent: it does not start after that, and its cancellation is kept until then. */
  get #startMs(): number {
    return this.#config.JOB_QUEUE_WAIT_MS + LATE_MS;
  }

  /** Queues a job that nobody waits for. */
  async submit(job: Job, place: Place): Promise<void> {
    const queue = this.#queueOf(job);
    await this.#orCancel({ id: jobIdOf(job), queue }, () => queue.add(job, { place }));
  }

  /** Where a job is that nobody waits for. */
  async look({ language, id }: Pick<KeptJob, "language" | "id">): Promise<JobState["state"]> {
    return storeCall(async () => (await this.#queueOf({ language }).look(id)).state);
  }

  /** Takes a job that this process may not wait for out of its queue, or tells its worker to end it; one that is not there does not start. */
  async cancel(id: string): Promise<void> {
    await storeCall(() => sendCancellation(this.#redis, JOB_CANCELLATIONS, id, this.#startMs));
    const queues = Object.values(this.#queues);
    await storeCall(() => Promise.all(queues.map((queue) => queue.withdraw(id))));
  }

  /** Whether the job waits, runs, or belongs to a round that has just ended. */
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

  /** Undefined: the store cannot say. A store that takes no writes will not have the job's result. */
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

  /** Ends the wait of a process that stops, unless there is a result. */
  async #leave(waited: Waited): Promise<void> {
    if ((await this.#look(waited))?.state === "ended") return;
    if (waited.place !== "first") await this.#cancel(waited);
    throw new ProducerStopped();
  }

  /** A deadline has passed. Returns when the job turns out to have started in time; it may have ended by now. */
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

  /** The store may still do what has failed, when it is back: the cancellation of the job comes behind it. */
  async #orCancel<T>(sent: Sent, operation: () => Promise<T>): Promise<T> {
    try {
      return await storeCall(operation);
    } catch (error) {
      void this.#cancel(sent);
      throw error;
    }
  }

  /** Never rejects. What fails here may still be done, too. */
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

  /** No one else reads the result; one that cannot be removed expires. */
  async #forget({ id, queue }: Waited): Promise<void> {
    try {
      await queue.forgetResult(id);
    } catch (error) {
      this.#log.debug({ err: errorText(error), job: id }, "removing a result failed");
    }
  }

  /** Waits for no job any longer: `run` throws ProducerStopped from now on. */
  stop(): void {
    this.#isStopped = true;
    for (const announced of this.#announced.values()) announced.notify();
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#queues).map((queue) => queue.close()));
  }
}

/** Without a message: the code's own, for a job that has waited. */
const saturated = (message?: string) =>
  new ServiceError("queue_saturated", message, { headers: { "retry-after": RETRY_SECONDS } });

/**
 * The start of a job by `performance.now()`; `at`: ms since 1970, by the clock of a worker. A clock that is behind costs no job its time:
 * none has started before it was in the queue. One that goes on with a round may have, and gets its time anew.
 */
function localStart(at: number, { began }: Pick<Waited, "began">): number {
  return Math.max(began, performance.now() - Math.max(0, Date.now() - at));
}

/** A run has no effect but its result, so the caller may repeat it. A paused program that is lost is replayed. */
function lost(job: Job): ServiceError {
  return isOfPausedProgram(job)
    ? new ServiceError("sandbox_execution_failed", undefined, { cause: "the job is lost" })
    : new ServiceError("store_unavailable", "The state store lost the execution; it may be repeated.");
}
