/**
 * Handles the jobs of one kind, with the configured concurrency and one attempt per job. When a worker dies, another worker takes the
 * stalled job once; a job of a paused program fails instead. A kept job, which no caller waits for, goes back to the queue when
 * no runner has a slot or its worker stops. It goes before other jobs of its place. A job that lost its lock is aborted, because another
 * worker may have it. A job whose caller no longer waits is not run.
 */
import { hostname } from "node:os";
import { type ErrorCode, type Job, type JobResult, type QueueKind, shownMs } from "@svc/contracts";
import { type CancellableRun, type Cancellations, errorText, type Log, type Redis } from "@svc/service-kit";
import { type Job as BullJob, WaitingError, Worker } from "bullmq";
import { queueConnection } from "./connection.ts";
import { KeptJobs } from "./kept-jobs.ts";
import {
  failed,
  goesBack,
  isFurtherRound,
  isOfPausedProgram,
  JOB_CANCELLATIONS,
  QUEUE_NAMES,
  type QueuedJob,
  queuedJobSchema,
  RESULT_LIFE_MS,
  resultKey,
} from "./protocol.ts";
import { RedisClock } from "./redis-clock.ts";
import { LOCK_MS, LockLostError, RunLocks } from "./run-locks.ts";

/** How often BullMQ looks for stalled jobs, which have no lock. It finds a job at the second look. */
const STALLED_CHECK_MS = 2500;
/** A job that starts sooner has no cancellation mark to look for: a producer waits at least a second for its add before it gives up. */
const SOON_MS = 250;

export interface StartedJob {
  job: Job;
  /** Time in the queue, in ms. */
  queueMs: number;
  /** Aborts with a ServiceError when the job is cancelled, or with LockLostError. */
  cancelled: AbortSignal;
}

/** Never rejects. */
export type HandleJob = (started: StartedJob) => Promise<JobResult>;

export interface ConsumerOptions {
  kind: QueueKind;
  concurrency: number;
  /** A connection for queues, whose commands wait without a limit while Redis is away. */
  redis: Redis;
  log: Log;
  cancellations: Cancellations;
  handle: HandleJob;
}

export class JobConsumer {
  readonly #options: ConsumerOptions;
  readonly #worker: Worker<unknown, void>;
  readonly #kept: KeptJobs;
  readonly #clock: RedisClock;
  readonly #locks: RunLocks;

  constructor(options: ConsumerOptions) {
    const { kind, concurrency, redis, log, cancellations } = options;
    const queue = QUEUE_NAMES[kind];
    this.#options = options;
    this.#kept = new KeptJobs(redis);
    this.#clock = new RedisClock(redis);
    this.#locks = new RunLocks(log, queue, (jobIds) => void cancellations.look(jobIds));
    this.#worker = new Worker(queue, (job, token) => this.#process(job, token), {
      connection: queueConnection(redis),
      concurrency,
      lockDuration: LOCK_MS,
      skipLockRenewal: true,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: 1,
      name: `${hostname()}-${process.pid}`,
    });
    this.#worker.on("error", (error) => log.warn({ err: errorText(error), queue }, "queue error"));
    this.#worker.on("stalled", (job) => log.warn({ job, queue }, "a stalled job was returned to the queue"));
  }

  get isRunning(): boolean {
    return this.#worker.isRunning();
  }

  async #process(queued: BullJob<unknown, void>, token = ""): Promise<void> {
    const id = queued.id ?? "";
    const run = this.#options.cancellations.begin(id);
    const unlock = this.#locks.add({ id, run, renew: () => queued.extendLock(token, LOCK_MS) });
    try {
      // The previous worker stored a result, but could not close the job in the queue.
      if (queued.stalledCounter > 0 && (await this.#isAnswered(id))) return;
      const job = queuedJobSchema.parse(queued.data);
      if (job.kept === undefined) await this.#processAwaited(queued, job, run);
      else await this.#processKept(queued, job, { run, token, lifeMs: job.kept });
    } finally {
      unlock();
      run.done();
    }
  }

  /** If this throws, the job has no result: the producer finds the job failed, or another worker takes it and makes a result. */
  async #processAwaited(queued: BullJob, job: QueuedJob, run: CancellableRun): Promise<void> {
    const id = queued.id ?? "";
    const { redis } = this.#options;
    const refusal = await this.#refusalOf(id, job, queued.stalledCounter > 0);
    const result = refusal === undefined ? await this.#handle(job, run) : failed(refusal);
    if (job.reply_to === undefined) return;
    // Redis executes the commands of one connection in their order, so the result is there before its announcement.
    await Promise.all([
      redis.set(resultKey(id), JSON.stringify(result), "PX", RESULT_LIFE_MS),
      redis.publish(job.reply_to, id),
      // The ended job stays in the queue for a while, but nobody needs its data any more.
      isFurtherRound(job) && queued.updateData({}),
    ]);
  }

  async #isAnswered(id: string): Promise<boolean> {
    return (await this.#options.redis.exists(resultKey(id))) === 1;
  }

  /** Why a job is not run; undefined when it is run. */
  async #refusalOf(id: string, job: QueuedJob, isRepeated: boolean): Promise<ErrorCode | undefined> {
    const { redis, log } = this.#options;
    if (isRepeated && isOfPausedProgram(job)) return "sandbox_execution_failed";
    const { start_by } = job;
    if (start_by === undefined) return undefined;
    const queueMs = this.#queueMsOf(job);
    const isLate = this.#clock.now() > start_by && !isRepeated;
    const isSoon = queueMs < SOON_MS;
    if (!isLate && (isSoon || (await redis.exists(JOB_CANCELLATIONS.markKey(id))) === 0)) return undefined;
    log.info({ job: id, waited_ms: shownMs(queueMs) }, "a job that nobody waits for was not run");
    return isLate ? "queue_saturated" : "execution_cancelled";
  }

  async #processKept(
    queued: BullJob,
    job: QueuedJob,
    { run, token, lifeMs }: { run: CancellableRun; token: string; lifeMs: number },
  ): Promise<void> {
    const kept = { id: job.execution_id, namespace: job.output_namespace };
    const begun = await this.#kept.begin(job);
    if (begun === "over") return;
    const result = begun === "cancelled" ? failed("execution_cancelled") : await this.#handle(job, run);
    if (!goesBack(job, result) || (await this.#kept.giveBack(kept, result)) === "cancelled")
      return this.#kept.end(kept, result, lifeMs);
    await queued.moveToWait(token);
    throw new WaitingError();
  }

  async #handle(job: QueuedJob, { signal: cancelled }: CancellableRun): Promise<JobResult> {
    const result = await this.#options.handle({ job, queueMs: this.#queueMsOf(job), cancelled });
    if (cancelled.reason instanceof LockLostError) throw cancelled.reason;
    return result;
  }

  #queueMsOf({ enqueued_at }: QueuedJob): number {
    return Math.max(0, this.#clock.now() - enqueued_at);
  }

  /** Takes no more jobs, and waits for those that run. */
  async close(): Promise<void> {
    await this.#worker.close();
    this.#locks.close();
  }
}
