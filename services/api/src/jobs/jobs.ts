/**
 * Jobs of callers who do not wait: made, found, waited for, cancelled. A job of another caller is as one that does not exist. A job that
 * the queue has lost, with the store's data or with its second worker, is found out when somebody asks for it, and has failed then.
 */
import { type Job, type JobResult, namespaceOf, type Principal, ServiceError } from "@svc/contracts";
import { hasEnded, type JobProducer, type KeptJob, type KeptJobs, type ListPage } from "@svc/job-queue";
import type { Config } from "@svc/service-kit";
import { tooManyJobs, tooMuchStored } from "../limits/window.ts";

/** Between the record of a job and its place in the queue. */
const QUEUED_MS = 5000;
/** An announcement of its end may be lost. */
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

  /** Queues a job. Throws `rate_limited` when its caller has too many that have not ended, or too much is stored of the caller with it. */
  async start(job: Job): Promise<void> {
    job.kept = this.#lifeMs;
    job.events = true;
    try {
      await this.#producer.submit(job, await this.#create(job));
    } catch (error) {
      // The store may still do what has failed, when it is back: this comes behind it, and is not waited for.
      this.#kept.remove({ id: job.execution_id, namespace: job.output_namespace }).catch(() => undefined);
      throw error;
    }
  }

  /** Where it waits. */
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

  /** Jobs that count and are lost count no longer. */
  async #forgetLost(namespace: string): Promise<void> {
    for (const id of await this.#kept.open(namespace))
      if ((await this.#look(id)) === undefined) await this.#kept.remove({ id, namespace });
  }

  /** Throws when the caller has no such job. */
  async find(principal: Principal, id: string): Promise<KeptJob> {
    const found = await this.#look(id);
    if (found?.namespace !== ownNamespace(principal)) throw new ServiceError("job_not_found");
    return found;
  }

  async #look(id: string): Promise<KeptJob | undefined> {
    const found = await this.#kept.find(id);
    if (found === undefined || hasEnded(found) || Date.now() - found.created_at < QUEUED_MS) return found;
    const state = await this.#producer.look(found);
    if (state === "waiting" || state === "started") return found;
    // Its end is kept before it leaves the queue, so what is still open now was lost.
    await this.#kept.end(found, state === "ended" ? BROKEN : LOST, this.#lifeMs);
    return this.#kept.find(id);
  }

  /** The job as soon as it has ended, at the latest after so long. */
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
    return this.#kept.list(ownNamespace(principal), after);
  }

  /** Ends a job, or removes one that has ended. */
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
