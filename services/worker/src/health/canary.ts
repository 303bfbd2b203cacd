/**
 * The canary: a real execution through queue, worker and jail, for each queue that has a language. Real traffic counts as well; without
 * it, a canary is sent every CANARY_INTERVAL_MS, and more often while none has succeeded. When running programs occupy all places, so
 * that no canary can start, they prove as much while they run. The last success of each queue is kept in Redis for the readiness of all
 * components. Ages are measured with a monotonic clock.
 */
import {
  CANARY_MAX_AGE_MS,
  canaryKey,
  canaryReason,
  findLanguage,
  type Job,
  type JobResult,
  newId,
  type QueueKind,
  queueKindsOf,
} from "@svc/contracts";
import type { JobQueues } from "@svc/job-queue";
import { type Config, errorText, type Log, type Redis } from "@svc/service-kit";
import type { FleetLoad } from "../runner/fleet.ts";
import type { WorkerMetrics } from "./metrics.ts";

/** The time of success in Redis is written at most this often. */
const PUBLISH_MS = 5000;
const RETRY_MS = 1000;
const CANARY_RUN_MS = 10_000;
/** Languages that start fastest. */
const PREFERRED: readonly string[] = ["python", "bash", "javascript", "node"];
const NEVER = Number.NEGATIVE_INFINITY;

/** Times are by `performance.now()`. */
interface Watched {
  language: string;
  lastSuccess: number;
  published: number;
  /** The last job that was sent, and when. */
  sent?: { id: string; at: number };
}

export interface CanaryDeps {
  config: Config;
  redis: Redis;
  log: Log;
  metrics: WorkerMetrics;
  queues: JobQueues;
  runners: { load: () => Promise<FleetLoad> };
}

export class Canary {
  readonly #deps: CanaryDeps;
  readonly #intervalMs: number;
  readonly #watched = new Map<QueueKind, Watched>();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(deps: CanaryDeps) {
    this.#deps = deps;
    this.#intervalMs = deps.config.CANARY_INTERVAL_MS || Number.POSITIVE_INFINITY;
  }

  /** Starts once the runtimes are known. */
  start(languages: readonly string[]): void {
    for (const kind of queueKindsOf(languages)) {
      const own = languages.filter((language) => findLanguage(language)?.queue === kind);
      const language = PREFERRED.find((name) => own.includes(name)) ?? (own[0] as string);
      this.#watched.set(kind, { language, lastSuccess: NEVER, published: NEVER });
    }
    if (this.#timer === undefined) this.#tick();
  }

  /** Why readiness fails: some queue had no success lately. Undefined: every queue had one. */
  get missing(): string | undefined {
    if (this.#watched.size === 0) return "no runtime is known yet";
    const now = performance.now();
    const stale = [...this.#watched].filter(([, { lastSuccess }]) => now - lastSuccess > CANARY_MAX_AGE_MS);
    return stale.length === 0 ? undefined : canaryReason(stale.map(([kind]) => kind));
  }

  get #oldestSuccess(): number {
    return Math.min(...[...this.#watched.values()].map(({ lastSuccess }) => lastSuccess));
  }

  /** Notes the outcome of any execution on this worker. */
  observe(language: string, result: JobResult): void {
    const kind = findLanguage(language)?.queue;
    if (!result.ok || kind === undefined) return;
    const watched = this.#watched.get(kind);
    if (watched !== undefined) this.#succeeded(kind, watched);
  }

  #succeeded(kind: QueueKind, watched: Watched): void {
    const { redis, log, metrics } = this.#deps;
    const now = performance.now();
    const today = Date.now();
    watched.lastSuccess = now;
    const oldest = this.#oldestSuccess;
    if (oldest !== NEVER) metrics.canarySucceeded(today - (now - oldest));
    if (now - watched.published < PUBLISH_MS) return;
    watched.published = now;
    redis.set(canaryKey(kind), String(today), "PX", CANARY_MAX_AGE_MS).catch((error: Error) => {
      watched.published = NEVER;
      log.warn({ err: errorText(error) }, "writing the canary's success failed");
    });
  }

  #tick(): void {
    const idleSince = performance.now() - this.#intervalMs;
    const idle = [...this.#watched].filter(([, { lastSuccess }]) => lastSuccess <= idleSince);
    Promise.all(idle.map(([kind, watched]) => this.#prove(kind, watched)))
      .catch((error: Error) => this.#deps.log.warn({ err: errorText(error) }, "queueing the canary failed"))
      .finally(() => {
        if (this.#isStopped) return;
        this.#timer = setTimeout(() => this.#tick(), RETRY_MS);
      });
  }

  /** Sends a canary unless a waiting job, or a canary in progress, will prove as much when it ends. */
  async #prove(kind: QueueKind, watched: Watched): Promise<void> {
    const isWaiting = (await this.#deps.queues[kind].counts()).waiting > 0;
    if (!isWaiting && !(await this.#isUnderWay(kind, watched))) await this.#send(kind, watched);
    else if (await this.#isOccupied(kind, isWaiting)) this.#succeeded(kind, watched);
  }

  /**
   * Whether jobs wait because programs hold the places, each within its time limit: these programs came through queue, worker and jail. Programs of
   * the queue itself hold the places of its workers. When the runners have no free slot, programs of any queue hold the places.
   */
  async #isOccupied(kind: QueueKind, isWaiting: boolean): Promise<boolean> {
    const { isFull, languages } = await this.#deps.runners.load();
    if (isFull) return languages.length > 0;
    return isWaiting && languages.some((language) => findLanguage(language)?.queue === kind);
  }

  async #send(kind: QueueKind, watched: Watched): Promise<void> {
    const { config, queues } = this.#deps;
    const id = newId();
    watched.sent = { id, at: performance.now() };
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
      run_timeout: Math.min(CANARY_RUN_MS, config.MAX_RUN_TIMEOUT),
      files: [],
    };
    await queues[kind].add(job);
  }

  /** While a canary runs, no other is sent: more runs would only take longer. A canary that hangs is not waited for. */
  async #isUnderWay(kind: QueueKind, { sent }: Watched): Promise<boolean> {
    if (sent === undefined || performance.now() - sent.at > CANARY_RUN_MS) return false;
    return (await this.#deps.queues[kind].look(sent.id)).state === "started";
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}
