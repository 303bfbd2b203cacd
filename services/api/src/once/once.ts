/**
 * Runs a request once: a repeat with the same key and body gets the stored answer for a while. While the first request runs, repeats
 * wait for its answer. Another body is refused. Only answers are stored, not errors. The first request holds a short lock and renews
 * it, so a process that dies frees the key soon. When the lock expires while Redis is unreachable, the next renewal claims the key
 * again, unless another request was faster.
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

/** Says that this request has claimed the entry. */
const OWN = Symbol("own");

/** Whether another request still waits for this one's answer. */
export type HasWaiters = () => Promise<boolean>;

/** The entry of a running request. Work may store the answer in it itself, atomically with other changes. */
export class OwnEntry {
  readonly store: string;
  /** How long an answer is stored. */
  readonly lifeMs: number;
  /** Text of the entry while the request runs. */
  readonly lock: string;
  readonly #entry: Entry;
  #kept = false;

  constructor(store: string, entry: Entry, lifeMs: number) {
    this.store = store;
    this.lifeMs = lifeMs;
    this.lock = JSON.stringify(entry);
    this.#entry = entry;
  }

  /** Digest of the request body, which must be the same in a repeat. */
  get body(): string {
    return this.#entry.body;
  }

  /** Text of the entry with the answer. */
  with(answer: unknown): string {
    return JSON.stringify({ ...this.#entry, answer });
  }

  /** Called when the work has stored the answer itself. */
  keep(): void {
    this.#kept = true;
  }

  get isKept(): boolean {
    return this.#kept;
  }
}

/** What the work of the first request receives. */
export interface Own {
  hasWaiters: HasWaiters;
  entry: OwnEntry;
}

export interface OnceOptions {
  /** The error for a request with the same key and another body. */
  conflict: ErrorCode;
  storedSeconds: number;
}

export interface OnceRequest {
  /** Redis key. */
  store: string;
  /** Text that must be the same in a repeat. */
  body: string;
  /** Ends the wait for another request's answer. */
  left: AbortSignal;
  /** Called before this request waits for another one in flight; may throw. The returned function is called when the wait is over. */
  onWait?: () => () => void;
  /** Stores the answer in place of the lock, or removes the lock; absent: every answer is stored. */
  keep?: (entry: OwnEntry, answer: unknown) => Promise<unknown>;
}

export class Once {
  readonly #redis: Redis;
  /** Arguments: key, expected text, new text, its life in ms. */
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

  /** The stored answer, or OWN when this request has claimed the free entry; undefined while another request works on it. */
  async #find(own: OwnEntry): Promise<Outcome | typeof OWN | undefined> {
    for (;;) {
      const isClaimed = await this.#claim(own);
      const text = isClaimed ? own.lock : await storeCall(() => this.#redis.get(own.store));
      // A claim may be sent again after its reply was lost; then it finds its own entry.
      if (text === own.lock) return OWN;
      if (text === null) continue;
      const found = JSON.parse(text) as Entry;
      if (found.body !== own.body) throw new ServiceError(this.#options.conflict);
      return found.answer === undefined ? undefined : { answer: found.answer, replayed: true };
    }
  }

  /** Waits until the other request has answered, or until it has failed and this request has claimed the entry. */
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

  /** Renews stored answers of earlier requests, so that they live as long as one that is stored now. */
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
      // A renewal after the removal of the entry would claim it again.
      clearInterval(renewal);
      // When the answer cannot be stored, the caller gets it all the same.
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

  /** Removes the entry. If another request has taken it over and has answered with the same body, returns that answer. */
  async #giveUp({ store, lock, body }: OwnEntry): Promise<unknown> {
    if ((await this.#replace(store, lock, "", 0)) === 1) return undefined;
    const found = JSON.parse((await this.#redis.get(store)) ?? "{}") as Partial<Entry>;
    return found.body === body ? found.answer : undefined;
  }
}
