/**
 * Runs a request once: the same key and body give the stored answer for a while. While the first request runs, further
 * ones wait for its answer; another body is refused. Only answers are stored, no errors. The first request holds a short
 * lock that it renews, so that a process that dies frees the key soon.
 */
import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorCode, newId, ServiceError } from "@svc/contracts";
import { type LuaCommand, luaCommand, type Redis, storeCall } from "@svc/service-kit";

const LOCK_MS = 15_000;
const RENEW_MS = 5000;
const WAITER_MS = 2000;
const PAUSE_MS = { first: 20, most: 500 } as const;
const REPLACE = new URL("./lua/replace.lua", import.meta.url);

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

/** The entry of a request that runs, for work that stores its answer itself, in one step with something else. */
export class OwnEntry {
  readonly store: string;
  /** Of an answer. */
  readonly lifeMs: number;
  /** Its text while the request runs. */
  readonly lock: string;
  readonly #entry: Entry;
  #kept = false;

  constructor(store: string, entry: Entry, lifeMs: number) {
    this.store = store;
    this.lifeMs = lifeMs;
    this.lock = JSON.stringify(entry);
    this.#entry = entry;
  }

  /** Its text with the answer. */
  with(answer: unknown): string {
    return JSON.stringify({ ...this.#entry, answer });
  }

  /** The work has put the answer in its place. */
  keep(): void {
    this.#kept = true;
  }

  get isKept(): boolean {
    return this.#kept;
  }
}

/** What the work of the first request is done with. */
export interface Own {
  hasWaiters: HasWaiters;
  entry: OwnEntry;
}

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
  /** What must be the same. */
  body: string;
  /** Ends the wait for another request's answer. */
  left: AbortSignal;
}

export class Once {
  readonly #redis: Redis;
  /** Key, text that must be there, text to store, its life in milliseconds. */
  readonly #replace: LuaCommand<number>;
  readonly #options: OnceOptions;

  constructor(redis: Redis, options: OnceOptions) {
    this.#redis = redis;
    this.#replace = luaCommand(redis, "svcReplace", REPLACE, 1);
    this.#options = options;
  }

  async run({ store, body, left }: OnceRequest, work: (own: Own) => Promise<unknown>): Promise<Outcome> {
    const entry: Entry = { body: hash("sha256", body, "base64url"), owner: newId() };
    const own = new OwnEntry(store, entry, this.#options.storedSeconds * 1000);
    for (let pause: number = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.most)) {
      const isClaimed = await this.#claim(own);
      const text = isClaimed ? own.lock : await storeCall(() => this.#redis.get(store));
      // A command that is sent again after its reply was lost finds its own entry.
      if (text === own.lock) return { answer: await this.#own(own, work), replayed: false };
      if (text === null) continue;
      const found = JSON.parse(text) as Entry;
      if (found.body !== entry.body) throw new ServiceError(this.#options.conflict);
      if (found.answer !== undefined) return { answer: found.answer, replayed: true };
      if (pause === PAUSE_MS.first) this.#options.onContention?.();
      await storeCall(() => this.#redis.set(`${store}:waiter`, "1", "PX", WAITER_MS));
      await sleep(pause, undefined, { signal: left }).catch(() => left.throwIfAborted());
    }
  }

  async #claim({ store, lock }: OwnEntry): Promise<boolean> {
    return (await storeCall(() => this.#redis.set(store, lock, "PX", LOCK_MS, "NX"))) === "OK";
  }

  /** Stored answers of earlier requests live as long as one that is stored now. */
  async keep(stores: readonly string[]): Promise<void> {
    if (stores.length === 0) return;
    const pipeline = this.#redis.pipeline();
    for (const store of stores) pipeline.expire(store, this.#options.storedSeconds);
    await pipeline.exec().catch(() => undefined);
  }

  async #own(entry: OwnEntry, work: (own: Own) => Promise<unknown>): Promise<unknown> {
    const { store, lock, lifeMs } = entry;
    const renewal = setInterval(() => {
      this.#replace(store, lock, lock, LOCK_MS).catch(() => undefined);
    }, RENEW_MS);
    const hasWaiters = async () => (await this.#redis.exists(`${store}:waiter`)) === 1;
    try {
      const answer = await work({ hasWaiters, entry });
      // An answer that cannot be stored is still the answer.
      if (!entry.isKept) {
        await this.#replace(store, lock, entry.with(answer), lifeMs).catch(() => undefined);
      }
      return answer;
    } catch (error) {
      await this.#replace(store, lock, "", 0).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewal);
    }
  }
}
