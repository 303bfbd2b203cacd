/**
 * The canary: a real execution through queue, worker and jail. Real traffic counts; an idle worker sends one every
 * CANARY_INTERVAL_MS, and more often while none has succeeded. The last success is kept in Redis for the readiness of
 * all components.
 */
import { CANARY_KEY, findLanguage, type Job, type JobResult, newId } from "@svc/contracts";
import type { JobQueues } from "@svc/job-queue";
import type { Config, Log, Redis } from "@svc/service-kit";
import type { WorkerMetrics } from "./metrics.ts";

/** Readiness needs a success at most this old. */
export const CANARY_MAX_AGE_MS = 60_000;
/** The shared time is written at most this often. */
const PUBLISH_MS = 5000;
const RETRY_MS = 1000;
const CANARY_RUN_MS = 10_000;

export class Canary {
  readonly #config: Config;
  readonly #redis: Redis;
  readonly #log: Log;
  readonly #metrics: WorkerMetrics;
  readonly #queues: JobQueues;
  #language = "";
  #lastSuccess = 0;
  #published = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(config: Config, redis: Redis, log: Log, metrics: WorkerMetrics, queues: JobQueues) {
    this.#config = config;
    this.#redis = redis;
    this.#log = log;
    this.#metrics = metrics;
    this.#queues = queues;
  }

  /** Starts once the runtimes are known. */
  start(languages: readonly string[]): void {
    this.#language = languages.includes("python") ? "python" : (languages[0] ?? "bash");
    if (this.#timer === undefined) this.#tick();
  }

  get fresh(): boolean {
    return Date.now() - this.#lastSuccess <= CANARY_MAX_AGE_MS;
  }

  /** Notes the outcome of any execution on this worker. */
  observe(result: JobResult): void {
    if (!result.ok) return;
    const now = Date.now();
    this.#lastSuccess = now;
    this.#metrics.canarySucceeded(now);
    if (now - this.#published < PUBLISH_MS) return;
    this.#published = now;
    this.#redis.set(CANARY_KEY, String(now), "PX", CANARY_MAX_AGE_MS).catch((error: Error) => {
      this.#published = 0;
      this.#log.warn({ err: error.message }, "writing the canary's success failed");
    });
  }

  #tick(): void {
    const idle = Date.now() - this.#lastSuccess >= this.#config.CANARY_INTERVAL_MS;
    const sent = idle ? this.#send() : Promise.resolve();
    sent
      .catch((error: Error) => this.#log.warn({ err: error.message }, "queueing the canary failed"))
      .finally(() => {
        const pause = this.fresh ? Math.max(RETRY_MS, this.#config.CANARY_INTERVAL_MS / 2) : RETRY_MS;
        this.#timer = setTimeout(() => this.#tick(), pause);
      });
  }

  async #send(): Promise<void> {
    const id = newId();
    const job: Job = {
      v: 1,
      request_id: `canary-${id}`,
      execution_id: id,
      session_id: newId(),
      principal: { tenantId: "svc", userId: "canary" },
      output_namespace: "svc:user:canary",
      language: this.#language,
      version: "*",
      code: "",
      args: [],
      run_timeout: Math.min(CANARY_RUN_MS, this.#config.MAX_RUN_TIMEOUT),
      files: [],
      enqueued_at: Date.now(),
    };
    await this.#queues[findLanguage(this.#language)?.queue ?? "other"].add(job);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
