/**
 * Jobs that need no durability and take a shorter way than the queue: a list in Redis for each kind of worker. One that is
 * lost, with its worker or with the store, is found to be gone within seconds. One that was withdrawn is never begun, and
 * what becomes of it reaches nobody.
 */
import { readFileSync } from "node:fs";
import {
  CANCEL_CHANNEL,
  JOB_HINTS_CHANNEL,
  type Job,
  type JobResult,
  jobHint,
  jobIdOf,
  type LiveJobState,
  liveJobKey,
  liveWaitingKey,
  type QueueKind,
  ServiceError,
} from "@svc/contracts";
import type { Redis } from "@svc/service-kit";
import type { JobWay, Seen } from "./way.ts";

const script = (name: string) => readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");
const SEND = script("send");
const LOOK = script("look");
const WITHDRAW = script("withdraw");

/** More than callers can have at once; beyond it something is broken. */
const MAX_WAITING = 10_000;
/** Beyond the time for which a job may wait. */
const MARGIN_MS = 10_000;
/** How long a withdrawn job is known as one. */
const WITHDRAWN_MS = 120_000;

type Arguments = (string | number)[];
type WithCommands = Redis & {
  svcLiveSend: (...args: Arguments) => Promise<number>;
  svcLiveLook: (...args: Arguments) => Promise<[LiveJobState | null, string | null, string | null]>;
  svcLiveWithdraw: (...args: Arguments) => Promise<string | null>;
};

export class LiveJobs implements JobWay {
  readonly pollMs = 1000;
  readonly #kind: QueueKind;
  readonly #hint: string;
  readonly #redis: WithCommands;
  readonly #waitMs: number;

  /** `waitMs`: how long a job may wait. */
  constructor(kind: QueueKind, redis: Redis, waitMs: number) {
    redis.defineCommand("svcLiveSend", { numberOfKeys: 2, lua: SEND });
    redis.defineCommand("svcLiveLook", { numberOfKeys: 1, lua: LOOK });
    redis.defineCommand("svcLiveWithdraw", { numberOfKeys: 2, lua: WITHDRAW });
    this.#kind = kind;
    this.#hint = jobHint("live", kind);
    this.#redis = redis as WithCommands;
    this.#waitMs = waitMs;
  }

  readonly lost = () => new ServiceError("sandbox_execution_failed", undefined, { cause: "the job is gone" });

  async send(job: Job): Promise<void> {
    const id = jobIdOf(job);
    const sent = await this.#redis.svcLiveSend(
      ...this.#keys(id),
      id,
      JSON.stringify(job),
      this.#waitMs + MARGIN_MS,
      MAX_WAITING,
      JOB_HINTS_CHANNEL,
      this.#hint,
    );
    if (sent === -1)
      throw new ServiceError("queue_saturated", undefined, { headers: { "retry-after": "5" } });
  }

  async look(id: string): Promise<Seen> {
    const [state, at, result] = await this.#redis.svcLiveLook(liveJobKey(id), JOB_HINTS_CHANNEL, this.#hint);
    if (state === "waiting") return { state };
    if (state === "taken") return { state: "started", at: Number(at) };
    if (state === "ended") return { state, result: JSON.parse(result ?? "") as JobResult };
    return { state: "gone" };
  }

  async withdraw(id: string): Promise<number | undefined> {
    const takenAt = await this.#withdraw(id, "");
    return takenAt === null ? undefined : Number(takenAt);
  }

  async cancel(id: string): Promise<void> {
    await Promise.all([this.#withdraw(id, "1"), this.#redis.publish(CANCEL_CHANNEL, id)]);
  }

  #withdraw(id: string, evenTaken: "" | "1"): Promise<string | null> {
    return this.#redis.svcLiveWithdraw(...this.#keys(id), id, WITHDRAWN_MS, evenTaken);
  }

  #keys(id: string): [string, string] {
    return [liveWaitingKey(this.#kind), liveJobKey(id)];
  }
}
