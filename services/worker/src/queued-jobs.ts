/**
 * Takes jobs of one kind from their queue. One attempt per job; one whose worker died is taken up once by another worker.
 * An answer goes to the waiting API process first and is kept with the job as well.
 */
import { hostname } from "node:os";
import {
  answerKey,
  JOB_HINTS_CHANNEL,
  type Job,
  type JobNotice,
  type JobResult,
  jobHint,
  jobIdOf,
  jobSchema,
  newId,
  QUEUE_NAMES,
  type QueueKind,
} from "@svc/contracts";
import type { Log, Redis } from "@svc/service-kit";
import { type Job as BullJob, Worker } from "bullmq";
import { Intake, type Task } from "./intake.ts";
import type { Permits } from "./permits.ts";

/** A worker that is gone for this long loses its jobs to another one. */
const LOCK_MS = 10_000;
const RENEW_MS = LOCK_MS / 2;
/** How often jobs of dead workers, and jobs whose hints were lost, are looked for. */
const CHECK_MS = 5000;
/** How long an answer that no process was there to take is kept. */
const ANSWER_SECONDS = 120;

export interface QueuedJobsDeps {
  redis: Redis;
  /** For the queue itself: what it has to say waits for a store that is away. */
  queueRedis: Redis;
  log: Log;
  permits: Permits;
  /** Never rejects. */
  work: (job: Job) => Promise<JobResult>;
}

export class QueuedJobs {
  readonly #kind: QueueKind;
  readonly #deps: QueuedJobsDeps;
  readonly #queue: Worker<unknown, JobResult>;
  readonly #intake: Intake;
  /** Tokens of the locks held here, by job id. */
  readonly #locks = new Map<string, string>();
  readonly #timers: NodeJS.Timeout[];

  constructor(kind: QueueKind, deps: QueuedJobsDeps) {
    const { queueRedis, log, permits } = deps;
    this.#kind = kind;
    this.#deps = deps;
    this.#intake = new Intake(permits, () => this.#take());
    this.#queue = new Worker<unknown, JobResult>(QUEUE_NAMES[kind], null, {
      connection: queueRedis as never,
      autorun: false,
      lockDuration: LOCK_MS,
      stalledInterval: CHECK_MS,
      maxStalledCount: 1,
      name: `${hostname()}-${process.pid}`,
    });
    this.#queue.on("error", (error) => log.warn({ err: error.message, queue: kind }, "queue error"));
    this.#timers = [
      setInterval(() => void this.#renew(), RENEW_MS),
      setInterval(() => this.#intake.look(), CHECK_MS),
    ];
  }

  async listen(subscriber: Redis): Promise<void> {
    const own = jobHint("queue", this.#kind);
    subscriber.on("message", (channel: string, hint: string) => {
      if (channel === JOB_HINTS_CHANNEL && hint === own) this.#intake.expect();
    });
    await subscriber.subscribe(JOB_HINTS_CHANNEL);
    await this.#queue.startStalledCheckTimer();
    this.#intake.look();
  }

  get isRunning(): boolean {
    return this.#queue.closing === undefined;
  }

  async #take(): Promise<Task | undefined> {
    try {
      const token = newId();
      const taken = await this.#queue.getNextJob(token, { block: false });
      if (taken === undefined) return undefined;
      return (release) => this.#do(taken, token, release);
    } catch (error) {
      this.#deps.log.warn(
        { err: (error as Error).message, queue: this.#kind },
        "a queued job could not be taken",
      );
      return undefined;
    }
  }

  async #do(taken: BullJob<unknown, JobResult>, token: string, release: () => void): Promise<void> {
    const { log, work } = this.#deps;
    const id = taken.id ?? "";
    this.#locks.set(id, token);
    try {
      const job = jobSchema.safeParse(taken.data);
      if (!job.success) {
        log.error({ err: job.error, job: id }, "a queued job cannot be read");
        await taken.moveToFailed(job.error, token, false);
        return;
      }
      const result = await work(job.data);
      release();
      if (job.data.reply_to !== undefined)
        void this.#tell(job.data.reply_to, { job: jobIdOf(job.data), result });
      await taken.moveToCompleted(result, token, false);
    } catch (error) {
      log.warn({ err: (error as Error).message, job: id }, "the end of a job could not be kept");
    } finally {
      if (this.#locks.get(id) === token) this.#locks.delete(id);
    }
  }

  /** Hands the answer over in the background, while the queue keeps it with the job. */
  async #tell(channel: string, notice: JobNotice): Promise<void> {
    const { redis } = this.#deps;
    try {
      if ((await redis.publish(channel, JSON.stringify(notice))) > 0) return;
      await redis.set(answerKey(notice.job), JSON.stringify(notice.result), "EX", ANSWER_SECONDS);
    } catch {
      // The store is away: the answer stays with the job, where the API looks for it.
    }
  }

  async #renew(): Promise<void> {
    if (this.#locks.size === 0) return;
    try {
      const [ids, tokens] = [[...this.#locks.keys()], [...this.#locks.values()]];
      const lost = await this.#queue.extendJobLocks(ids, tokens, LOCK_MS);
      if (lost.length > 0) this.#deps.log.warn({ jobs: lost }, "jobs count as those of a dead worker");
    } catch (error) {
      this.#deps.log.warn({ err: (error as Error).message, queue: this.#kind }, "jobs could not be held");
    }
  }

  /** Takes no more, and waits for those in work. */
  async close(): Promise<void> {
    await this.#intake.close();
    for (const timer of this.#timers) clearInterval(timer);
    await this.#queue.close();
  }
}
