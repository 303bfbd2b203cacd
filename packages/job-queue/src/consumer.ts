/**
 * Handles the jobs of one kind, as many at once as configured. One attempt per job. A job whose worker died is taken up once by
 * another worker; one of a paused program fails instead. A job whose lock was lost is aborted: another worker may have it.
 */
import { hostname } from "node:os";
import {
  type ErrorCode,
  type Job,
  type JobResult,
  jobSchema,
  type QueueKind,
  ServiceError,
} from "@svc/contracts";
import type { Log, Redis } from "@svc/service-kit";
import { type Job as QueuedJob, WaitingError, Worker } from "bullmq";
import type { Cancellations } from "./cancellations.ts";
import { queueConnection } from "./connection.ts";
import { KeptJobs } from "./kept-jobs.ts";
import { isOfPausedProgram, QUEUE_NAMES, RESULT_LIFE_MS, resultKey } from "./protocol.ts";

/** A worker that does not renew the lock of a job for so long counts as dead. */
const LOCK_MS = 5000;
/** How often stalled jobs, those without a lock, are looked for; one is found at the second look. */
const STALLED_CHECK_MS = 2500;
/** How BullMQ words each lock that could not be renewed. */
const LOCK_NOT_RENEWED = "could not renew lock for job";

/** Never rejects. The signal aborts with a ServiceError when the job is cancelled, or with LockLostError. */
export type HandleJob = (job: Job, cancelled: AbortSignal) => Promise<JobResult>;

export interface ConsumerOptions {
  kind: QueueKind;
  concurrency: number;
  /** For queues: commands wait for a store that is away. */
  redis: Redis;
  log: Log;
  cancellations: Cancellations;
  handle: HandleJob;
}

class LockLostError extends Error {}

export class JobConsumer {
  readonly #options: ConsumerOptions;
  readonly #worker: Worker<unknown, void>;
  readonly #kept: KeptJobs;

  constructor(options: ConsumerOptions) {
    const { kind, concurrency, redis, log, cancellations } = options;
    const queue = QUEUE_NAMES[kind];
    this.#options = options;
    this.#kept = new KeptJobs(redis);
    this.#worker = new Worker(queue, (job, token) => this.#process(job, token), {
      connection: queueConnection(redis),
      concurrency,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: 1,
      name: `${hostname()}-${process.pid}`,
    });
    this.#worker.on("error", (error) => {
      // `lockRenewalFailed` has told of these.
      if (error.message.startsWith(LOCK_NOT_RENEWED)) return;
      log.warn({ err: error.message, queue }, "queue error");
    });
    this.#worker.on("stalled", (job) => log.warn({ job, queue }, "a stalled job was returned to the queue"));
    this.#worker.on("lockRenewalFailed", (jobs) => {
      for (const job of jobs) {
        // The lock of a job that ended meanwhile is gone, as it should be.
        if (!cancellations.abort(job, new LockLostError("the lock of the job was lost"))) continue;
        log.warn({ job, queue }, "lock renewal failed; the job was aborted");
      }
    });
  }

  get isRunning(): boolean {
    return this.#worker.isRunning();
  }

  /** A failure leaves the job without a result: the producer finds it failed, or its next worker makes one. */
  async #process(queued: QueuedJob<unknown, void>, token: string | undefined): Promise<void> {
    const id = queued.id ?? "";
    const job = jobSchema.parse(queued.data);
    if (job.kept !== undefined) return this.#processKept(queued, job, job.kept, token);
    const { redis } = this.#options;
    const isRepeated = queued.stalledCounter > 0;
    // Its worker answered it, and could not end it in the queue.
    if (isRepeated && (await redis.exists(resultKey(id))) === 1) return;
    const result = isRepeated && isOfPausedProgram(job) ? notRepeated() : await this.#handle(id, job);
    if (job.reply_to === undefined) return;
    // Commands of one connection are done in their order.
    await Promise.all([
      redis.set(resultKey(id), JSON.stringify(result), "PX", RESULT_LIFE_MS),
      redis.publish(job.reply_to, id),
    ]);
  }

  /** A worker that ends before the job does leaves it to another one. */
  async #processKept(queued: QueuedJob, job: Job, lifeMs: number, token: string | undefined): Promise<void> {
    const kept = { id: job.execution_id, namespace: job.output_namespace };
    const begun = await this.#kept.begin(job);
    if (begun === "over") return;
    const result = begun === "cancelled" ? failed("execution_cancelled") : await this.#handle(kept.id, job);
    if (!result.ok && result.error.code === "shutting_down") {
      await queued.moveToWait(token);
      throw new WaitingError();
    }
    await this.#kept.end(kept, result, lifeMs);
  }

  async #handle(id: string, job: Job): Promise<JobResult> {
    const { cancellations, handle } = this.#options;
    const { signal, done } = cancellations.begin(id);
    const result = await handle(job, signal).finally(done);
    if (signal.reason instanceof LockLostError) throw signal.reason;
    return result;
  }

  /** Takes no more jobs, and waits for those that run. */
  async close(): Promise<void> {
    await this.#worker.close();
  }
}

const notRepeated = () => failed("sandbox_execution_failed");

function failed(why: ErrorCode): JobResult {
  const { code, status, message } = new ServiceError(why);
  return { ok: false, error: { code, status, message } };
}
