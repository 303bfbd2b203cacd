/**
 * Runs a request once: the same key and body give the stored answer for a while. While the first request runs, further
 * ones wait for its answer; another body is refused. Only answers are stored, no errors. The first request
 * holds a short lock that it renews, so that a process that dies frees the key soon. A lock that lapsed while the store was away
 * is claimed anew by its renewal, unless another request was faster.
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

/** This request's own entry. */
const OWN = Symbol("own");

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

  /** Digest of what must be the same. */
  get body(): string {
    return this.#entry.body;
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
}

export interface OnceRequest {
  /** Redis key. */
  store: string;
  /** What must be the same. */
  body: string;
  /** Ends the wait for another request's answer. */
  left: AbortSignal;
  /** Called when it meets another request in flight; returns what is called when it waits no longer. May refuse. */
  onWait?: () => () => void;
  /** Stores the answer in place of the lock, or removes the lock; absent: every answer is stored. */
  keep?: (entry: OwnEntry, answer: unknown) => Promise<unknown>;
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

  async run(request: OnceRequest, work: (own: Own) => Promise<unknown>): Promise<Outcome> {
    const { store, body } = request;
    const entry: Entry = { body: hash("sha256", body, "base64url"), owner: newId() };
    const own = new OwnEntry(store, entry, this.#options.storedSeconds * 1000);
    const found = (await this.#find(own)) ?? (await this.#wait(own, request));
    return found === OWN ? this.#own(own, work, request.keep) : found;
  }

  /** The stored answer, or OWN when there was no entry and this request has claimed it; undefined: another one works on it. */
  async #find(own: OwnEntry): Promise<Outcome | typeof OWN | undefined> {
    for (;;) {
      const isClaimed = await this.#claim(own);
      const text = isClaimed ? own.lock : await storeCall(() => this.#redis.get(own.store));
      // A command that is sent again after its reply was lost finds its own entry.
      if (text === own.lock) return OWN;
      if (text === null) continue;
      const found = JSON.parse(text) as Entry;
      if (found.body !== own.body) throw new ServiceError(this.#options.conflict);
      return found.answer === undefined ? undefined : { answer: found.answer, replayed: true };
    }
  }

  /** Waits until another request has answered, or has failed and this one has claimed the entry. */
  async #wait(own: OwnEntry, { left, onWait }: OnceRequest): Promise<Outcome | typeof OWN> {
    const leave = onWait?.();
    try {
      for (let pause: number = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.most)) {
        await storeCall(() => this.#redis.set(`${own.store}:waiter`, "1", "PX", WAITER_MS));
        await sleep(pause, undefined, { signal: left }).catch(() => left.throwIfAborted());
        const found = await this.#find(own);
        if (found !== undefined) return found;
      }
    } finally {
      leave?.();
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

  async #own(
    own: OwnEntry,
    work: (own: Own) => Promise<unknown>,
    keep: OnceRequest["keep"] = (_own, answer) => this.#keep(own, answer),
  ): Promise<Outcome> {
    const { store, lock } = own;
    const renewal = setInterval(() => {
      this.#replace(store, lock, lock, LOCK_MS).catch(() => undefined);
    }, RENEW_MS);
    const hasWaiters = async () => (await this.#redis.exists(`${store}:waiter`)) === 1;
    try {
      const answer = await work({ hasWaiters, entry: own });
      // A renewal that came after the removal would claim the entry anew.
      clearInterval(renewal);
      // An answer that cannot be stored is still the answer.
      if (!own.isKept) await keep(own, answer).catch(() => undefined);
      return { answer, replayed: false };
    } catch (error) {
      clearInterval(renewal);
      const answer = await this.#giveUp(own).catch(() => undefined);
      if (answer === undefined) throw error;
      return { answer, replayed: true };
    }
  }

  #keep(own: OwnEntry, answer: unknown): Promise<number> {
    return this.#replace(own.store, own.lock, own.with(answer), own.lifeMs);
  }

  /** Removes the entry, unless it was lost; then another request with the same body may have answered. */
  async #giveUp({ store, lock, body }: OwnEntry): Promise<unknown> {
    if ((await this.#replace(store, lock, "", 0)) === 1) return undefined;
    const found = JSON.parse((await this.#redis.get(store)) ?? "{}") as Partial<Entry>;
    return found.body === body ? found.answer : undefined;
  }
}
