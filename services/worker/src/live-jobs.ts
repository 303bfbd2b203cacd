/**
 * Takes live jobs of one kind. Says once a second that it has them in work; one that was withdrawn meanwhile is cancelled,
 * and its result reaches nobody.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  JOB_HINTS_CHANNEL,
  type Job,
  type JobResult,
  jobHint,
  jobSchema,
  LIVE_JOB_PREFIX,
  liveJobKey,
  liveTakenKey,
  liveWaitingKey,
  newId,
  type QueueKind,
} from "@svc/contracts";
import type { Log, Redis } from "@svc/service-kit";
import { Intake, type Task } from "./intake.ts";
import type { Permits } from "./permits.ts";

const script = (name: string) => readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");
const TAKE = script("take");
const RENEW = script("renew");
const END = script("end");

/** A worker that is silent for so long counts as dead. */
const SILENT_MS = 3000;
const RENEW_MS = 1000;
/** How long a result is kept for an API process that looks for it. */
const RESULT_MS = 120_000;
/** For a store that is away when a job ends. */
const END_TRIES = 5;
const END_PAUSE_MS = 500;

type Arguments = (string | number)[];
type WithCommands = Redis & {
  svcLiveTake: (...args: Arguments) => Promise<[string, string] | null>;
  svcLiveRenew: (...args: Arguments) => Promise<string[]>;
  svcLiveEnd: (...args: Arguments) => Promise<number>;
};

export interface LiveJobsDeps {
  redis: Redis;
  log: Log;
  permits: Permits;
  /** Never rejects. */
  work: (job: Job) => Promise<JobResult>;
  cancel: (jobId: string) => void;
}

export class LiveJobs {
  readonly #kind: QueueKind;
  readonly #deps: LiveJobsDeps;
  readonly #redis: WithCommands;
  readonly #worker = newId();
  /** Times of taking, by id. */
  readonly #inWork = new Map<string, number>();
  readonly #intake: Intake;
  #renewing: NodeJS.Timeout | undefined;

  constructor(kind: QueueKind, deps: LiveJobsDeps) {
    const { redis, permits } = deps;
    redis.defineCommand("svcLiveTake", { numberOfKeys: 2, lua: TAKE });
    redis.defineCommand("svcLiveRenew", { numberOfKeys: 1, lua: RENEW });
    redis.defineCommand("svcLiveEnd", { numberOfKeys: 2, lua: END });
    this.#kind = kind;
    this.#deps = deps;
    this.#redis = redis as WithCommands;
    this.#intake = new Intake(permits, () => this.#take());
  }

  async listen(subscriber: Redis): Promise<void> {
    const own = jobHint("live", this.#kind);
    subscriber.on("message", (channel: string, hint: string) => {
      if (channel === JOB_HINTS_CHANNEL && hint === own) this.#intake.expect();
    });
    await subscriber.subscribe(JOB_HINTS_CHANNEL);
    this.#intake.look();
  }

  async #take(): Promise<Task | undefined> {
    const takenAt = Date.now();
    try {
      const taken = await this.#redis.svcLiveTake(
        liveWaitingKey(this.#kind),
        liveTakenKey(this.#kind),
        this.#worker,
        takenAt,
        SILENT_MS,
        LIVE_JOB_PREFIX,
      );
      if (taken === null) return undefined;
      return (release) => this.#do(...taken, takenAt, release);
    } catch (error) {
      // Who waits for a job tells of it again.
      this.#deps.log.warn(
        { err: (error as Error).message, queue: this.#kind },
        "a live job could not be taken",
      );
      return undefined;
    }
  }

  async #do(id: string, text: string, takenAt: number, release: () => void): Promise<void> {
    const job = this.#parse(id, text);
    // One that cannot be read is left to who waits; one that came back with the store is in work here.
    if (job === undefined || this.#inWork.has(id)) return;
    this.#inWork.set(id, takenAt);
    this.#renewing ??= setInterval(() => void this.#renew(), RENEW_MS);
    const ended = this.#end(id, job, await this.#deps.work(job), takenAt);
    release();
    await ended;
    this.#inWork.delete(id);
    if (this.#inWork.size > 0) return;
    clearInterval(this.#renewing);
    this.#renewing = undefined;
  }

  #parse(id: string, text: string): Job | undefined {
    try {
      return jobSchema.parse(JSON.parse(text));
    } catch (error) {
      this.#deps.log.error({ err: error, job: id }, "a live job cannot be read");
      return undefined;
    }
  }

  async #end(id: string, { reply_to = "" }: Job, result: JobResult, takenAt: number): Promise<void> {
    const taken = liveTakenKey(this.#kind);
    const text = JSON.stringify(result);
    for (let tries = 1; ; tries++) {
      try {
        await this.#redis.svcLiveEnd(
          liveJobKey(id),
          taken,
          this.#worker,
          id,
          text,
          RESULT_MS,
          reply_to,
          takenAt,
        );
        return;
      } catch (error) {
        this.#deps.log.warn({ err: (error as Error).message, job: id }, "a result could not be kept");
        if (tries === END_TRIES) return;
        await sleep(END_PAUSE_MS);
      }
    }
  }

  async #renew(): Promise<void> {
    try {
      const held = [...this.#inWork].flat();
      const taken = liveTakenKey(this.#kind);
      const lost = await this.#redis.svcLiveRenew(taken, this.#worker, SILENT_MS, LIVE_JOB_PREFIX, ...held);
      for (const id of lost) if (this.#inWork.has(id)) this.#deps.cancel(id);
    } catch {
      // The store is away; what is in work is told of when it is back.
    }
  }

  /** Takes no more, and waits for those in work. */
  async close(): Promise<void> {
    await this.#intake.close();
  }
}
