/**
 * The canary: a real execution through queue, worker and jail, for each queue that has a language. Real traffic counts; where
 * there is none, one is sent every CANARY_INTERVAL_MS, and more often while none has succeeded. The last success of each
 * queue is kept in Redis for the readiness of all components.
 */
import {
  CANARY_MAX_AGE_MS,
  canaryKey,
  canaryReason,
  EARLIER_CANARY_KEY,
  findLanguage,
  type Job,
  type JobResult,
  newId,
  type QueueKind,
  queueKindsOf,
} from "@svc/contracts";
import type { JobQueues } from "@svc/job-queue";
import type { Config, Log, Redis } from "@svc/service-kit";
import type { WorkerMetrics } from "./metrics.ts";

/** The shared time is written at most this often. */
const PUBLISH_MS = 5000;
const RETRY_MS = 1000;
const CANARY_RUN_MS = 10_000;
/** Those that start fastest. */
const PREFERRED: readonly string[] = ["python", "bash", "javascript", "node"];

interface Watched {
  language: string;
  lastSuccess: number;
  published: number;
  /** The last job that was sent, and when, in ms since 1970. */
  sent?: { id: string; at: number };
}

export class Canary {
  readonly #config: Config;
  readonly #redis: Redis;
  readonly #log: Log;
  readonly #metrics: WorkerMetrics;
  readonly #queues: JobQueues;
  readonly #watched = new Map<QueueKind, Watched>();
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
    for (const kind of queueKindsOf(languages)) {
      const own = languages.filter((language) => findLanguage(language)?.queue === kind);
      const language = PREFERRED.find((name) => own.includes(name)) ?? (own[0] as string);
      this.#watched.set(kind, { language, lastSuccess: 0, published: 0 });
    }
    if (this.#timer === undefined) this.#tick();
  }

  /** Whether every queue had a success lately. */
  get fresh(): boolean {
    return this.missing === undefined;
  }

  /** Why it is not fresh. */
  get missing(): string | undefined {
    if (this.#watched.size === 0) return "no runtime is known yet";
    const now = Date.now();
    const stale = [...this.#watched].filter(([, { lastSuccess }]) => now - lastSuccess > CANARY_MAX_AGE_MS);
    return stale.length === 0 ? undefined : canaryReason(stale.map(([kind]) => kind));
  }

  #oldestSuccess(): number {
    return Math.min(...[...this.#watched.values()].map(({ lastSuccess }) => lastSuccess));
  }

  /** Notes the outcome of any execution on this worker. */
  observe(language: string, result: JobResult): void {
    const kind = findLanguage(language)?.queue;
    if (!result.ok || kind === undefined) return;
    const watched = this.#watched.get(kind);
    if (watched === undefined) return;
    const now = Date.now();
    watched.lastSuccess = now;
    const oldest = this.#oldestSuccess();
    if (oldest > 0) this.#metrics.canarySucceeded(oldest);
    if (now - watched.published < PUBLISH_MS) return;
    watched.published = now;
    const keys = [canaryKey(kind), EARLIER_CANARY_KEY];
    Promise.all(keys.map((key) => this.#redis.set(key, String(now), "PX", CANARY_MAX_AGE_MS))).catch(
      (error: Error) => {
        watched.published = 0;
        this.#log.warn({ err: error.message }, "writing the canary's success failed");
      },
    );
  }

  #tick(): void {
    const idleSince = Date.now() - this.#config.CANARY_INTERVAL_MS;
    const idle = [...this.#watched].filter(([, { lastSuccess }]) => lastSuccess <= idleSince);
    Promise.all(idle.map(([kind, watched]) => this.#send(kind, watched)))
      .catch((error: Error) => this.#log.warn({ err: error.message }, "queueing the canary failed"))
      .finally(() => {
        const pause = this.fresh ? Math.max(RETRY_MS, this.#config.CANARY_INTERVAL_MS / 2) : RETRY_MS;
        this.#timer = setTimeout(() => this.#tick(), pause);
      });
  }

  /** A job that waits already proves as much. */
  async #send(kind: QueueKind, watched: Watched): Promise<void> {
    if ((await this.#queues[kind].counts()).waiting > 0 || (await this.#isUnderWay(kind, watched))) return;
    const id = newId();
    watched.sent = { id, at: Date.now() };
    const job: Job = {
      v: 1,
      request_id: `canary-${id}`,
      execution_id: id,
      session_id: newId(),
      principal: { tenantId: "svc", userId: "canary" },
      output_namespace: "svc:user:canary",
      language: watched.language,
      version: "*",
      code: "",
      args: [],
      run_timeout: Math.min(CANARY_RUN_MS, this.#config.MAX_RUN_TIMEOUT),
      files: [],
      enqueued_at: watched.sent.at,
    };
    await this.#queues[kind].add(job);
  }

  /** Where a run takes long, more of them would take longer. One that hangs is not waited for. */
  async #isUnderWay(kind: QueueKind, { sent }: Watched): Promise<boolean> {
    if (sent === undefined || Date.now() - sent.at > CANARY_RUN_MS) return false;
    return (await this.#queues[kind].look(sent.id)).state === "started";
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
