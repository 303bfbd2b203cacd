/**
 * Runs a request once: the same key and body give the stored answer for a while. While the first request runs, further
 * ones wait for its answer; another body is refused. Only answers are stored, no errors. The first request holds a short
 * lock that it renews, so that a process that dies frees the key soon.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorCode, newId, ServiceError } from "@svc/contracts";
import { type Redis, storeCall } from "@svc/service-kit";

const LOCK_MS = 15_000;
const RENEW_MS = 5000;
const WAITER_MS = 2000;
const PAUSE_MS = { first: 20, most: 500 } as const;
const REPLACE = readFileSync(new URL("./lua/replace.lua", import.meta.url), "utf8");

interface Entry {
  body: string;
  owner: string;
  answer?: unknown;
}

export interface Outcome {
  answer: unknown;
  replayed: boolean;
}

/** Whether another request still waits for this one's answer. */
export type HasWaiters = () => Promise<boolean>;

export interface OnceOptions {
  /** What a request with the same key and another body is refused with. */
  conflict: ErrorCode;
  storedSeconds: number;
  /** Called when a request meets another one in flight. */
  onContention?: () => void;
}

export interface OnceRequest {
  /** Redis key. */
  store: string;
  /** Canonical text of what must be the same. */
  body: string;
  /** Ends the wait for another request's answer. */
  left: AbortSignal;
}

type WithCommands = Redis & {
  svcReplace: (key: string, found: string, text: string, lifeMs: number) => Promise<number>;
};

export class Once {
  readonly #redis: WithCommands;
  readonly #options: OnceOptions;

  constructor(redis: Redis, options: OnceOptions) {
    redis.defineCommand("svcReplace", { numberOfKeys: 1, lua: REPLACE });
    this.#redis = redis as WithCommands;
    this.#options = options;
  }

  async run(
    { store, body, left }: OnceRequest,
    work: (hasWaiters: HasWaiters) => Promise<unknown>,
  ): Promise<Outcome> {
    const entry: Entry = { body: createHash("sha256").update(body).digest("base64url"), owner: newId() };
    for (let pause: number = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.most)) {
      const taken = await storeCall(() => this.#redis.set(store, JSON.stringify(entry), "PX", LOCK_MS, "NX"));
      if (taken === "OK") return { answer: await this.#own(store, entry, work), replayed: false };
      const text = await storeCall(() => this.#redis.get(store));
      if (text === null) continue;
      const found = JSON.parse(text) as Entry;
      if (found.body !== entry.body) throw new ServiceError(this.#options.conflict);
      if (found.answer !== undefined) return { answer: found.answer, replayed: true };
      if (pause === PAUSE_MS.first) this.#options.onContention?.();
      await storeCall(() => this.#redis.set(`${store}:waiter`, "1", "PX", WAITER_MS));
      await sleep(pause, undefined, { signal: left }).catch(() => left.throwIfAborted());
    }
  }

  /** Stored answers of earlier requests live as long as one that is stored now. */
  async keep(stores: readonly string[]): Promise<void> {
    if (stores.length === 0) return;
    const pipeline = this.#redis.pipeline();
    for (const store of stores) pipeline.expire(store, this.#options.storedSeconds);
    await pipeline.exec().catch(() => undefined);
  }

  async #own(
    store: string,
    entry: Entry,
    work: (hasWaiters: HasWaiters) => Promise<unknown>,
  ): Promise<unknown> {
    const lock = JSON.stringify(entry);
    const renewal = setInterval(() => {
      this.#redis.svcReplace(store, lock, lock, LOCK_MS).catch(() => undefined);
    }, RENEW_MS);
    try {
      const answer = await work(async () => (await this.#redis.exists(`${store}:waiter`)) === 1);
      const kept = JSON.stringify({ ...entry, answer });
      // An answer that cannot be stored is still the answer.
      await this.#redis
        .svcReplace(store, lock, kept, this.#options.storedSeconds * 1000)
        .catch(() => undefined);
      return answer;
    } catch (error) {
      await this.#redis.svcReplace(store, lock, "", 0).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewal);
    }
  }
}
