/**
 * Jobs of callers who do not wait: creates, finds, awaits and cancels them. A job of another caller looks like one that does not exist.
 * The queue may lose a job, with the data of Redis or when its second worker dies. The next request that shows the job marks it as failed.
 */
import { type Job, type JobResult, namespaceOf, type Principal, ServiceError } from "@svc/contracts";
import { hasEnded, type JobProducer, type KeptJob, type KeptJobs, type ListPage } from "@svc/job-queue";
import type { Config } from "@svc/service-kit";
import { tooManyJobs, tooMuchStored } from "../limits/window.ts";

/** The longest time between storing the record of a job and adding the job to the queue. */
const QUEUED_MS = 5000;
/** The announcement that a job has ended may be lost, so a wait also polls at this interval. */
const LOOK_MS = 2000;

export class Jobs {
  readonly #config: Config;
  readonly #kept: KeptJobs;
  readonly #producer: JobProducer;

  constructor(config: Config, kept: KeptJobs, producer: JobProducer) {
    this.#config = config;
    this.#kept = kept;
    this.#producer = producer;
  }

  get #lifeMs(): number {
    return this.#config.SVC_JOB_RETENTION_SECONDS * 1000;
  }

  /** Queues a job. Throws `rate_limited` when its caller has too many unfinished jobs, or would have too many stored bytes. */
  async start(job: Job): Promise<void> {
    job.kept = this.#lifeMs;
    job.events = true;
    try {
      await this.#producer.submit(job, await this.#create(job));
    } catch (error) {
      // Redis may still execute the failed command when it is back. This removal is sent after it, and nobody waits for it.
      this.#kept.remove({ id: job.execution_id, namespace: job.output_namespace }).catch(() => undefined);
      throw error;
    }
  }

  /** Stores the record of a job. Returns its place in the queue. */
  async #create(job: Job): Promise<number> {
    const { SVC_MAX_UNFINISHED_JOBS: jobs, SVC_MAX_STORED_BYTES: bytes } = this.#config;
    const create = () => this.#kept.create(job, { jobs, bytes });
    let place = await create();
    if (typeof place === "string") {
      await this.#forgetLost(job.output_namespace);
      place = await create();
    }
    if (place === "too_many") throw tooManyJobs(jobs);
    if (place === "too_much") throw tooMuchStored(bytes);
    return place;
  }

  /**
   * Makes lost jobs stop counting as unfinished: `#look` ends them, and those without a record are removed. It looks only at the oldest
   * jobs, because a caller may have very many. A lost job becomes one of the oldest.
   */
  async #forgetLost(namespace: string): Promise<void> {
    const look = async (id: string) => {
      if ((await this.#look(id)) === undefined) await this.#kept.remove({ id, namespace });
    };
    await Promise.all((await this.#kept.open(namespace)).map(look));
  }

  /** Throws when the caller has no such job. */
  async find(principal: Principal, id: string): Promise<KeptJob> {
    const found = await this.#look(id);
    if (found?.namespace !== ownNamespace(principal)) throw new ServiceError("job_not_found");
    return found;
  }

  async #look(id: string): Promise<KeptJob | undefined> {
    const found = await this.#kept.find(id);
    return found && this.#unlessLost(found);
  }

  /** The job as it is, or as it has ended because the queue lost it. */
  async #unlessLost(found: KeptJob): Promise<KeptJob | undefined> {
    if (hasEnded(found) || Date.now() - found.created_at < QUEUED_MS) return found;
    const state = await this.#producer.look(found);
    if (state === "waiting" || state === "started") return found;
    // A job's end is stored before the job leaves the queue, so a job that is still open now was lost.
    await this.#kept.end(found, state === "ended" ? BROKEN : LOST, this.#lifeMs);
    return this.#kept.find(found.id);
  }

  /** The job when it has ended, or after `ms`, whichever comes first. */
  async afterEnd(principal: Principal, id: string, ms: number, left: AbortSignal): Promise<KeptJob> {
    const untilMs = performance.now() + ms;
    const { news, leave } = this.#producer.feed.watchEnd(id);
    try {
      for (;;) {
        const found = await this.find(principal, id);
        const leftMs = untilMs - performance.now();
        if (hasEnded(found) || leftMs <= 0 || left.aborted) return found;
        await news.wait({ ms: Math.min(leftMs, LOOK_MS), signal: left });
      }
    } finally {
      leave();
    }
  }

  async list(principal: Principal, after: ListPage["next"]): Promise<ListPage> {
    const page = await this.#kept.list(ownNamespace(principal), after);
    const jobs = await Promise.all(page.jobs.map((job) => this.#unlessLost(job)));
    return { ...page, jobs: jobs.filter((job) => job !== undefined) };
  }

  /** Cancels a job, or removes one that has ended. */
  async cancel(principal: Principal, id: string): Promise<"ends" | "removed"> {
    const found = await this.find(principal, id);
    const before = hasEnded(found) ? found.status : await this.#kept.cancel(found, CANCELLED, this.#lifeMs);
    if (before === "queued" || before === "running") {
      await this.#producer.cancel(found.id);
      return "ends";
    }
    await this.#kept.remove(found);
    return "removed";
  }
}

const ownNamespace = (principal: Principal) => namespaceOf(principal, { kind: "user" });

const failure = (error: ServiceError): JobResult => {
  const { code, status, message } = error;
  return { ok: false, error: { code, status, message } };
};

const CANCELLED = failure(new ServiceError("execution_cancelled"));
const BROKEN = failure(new ServiceError("sandbox_execution_failed"));
const LOST = failure(
  new ServiceError("store_unavailable", "The state store lost the execution; it may be repeated."),
);
