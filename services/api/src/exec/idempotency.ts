/**
 * Idempotency-Key: the same key and body of a principal give the stored 200 answer for 600 s. While the first request
 * runs, further ones wait for its answer; another body is refused. Only 200 answers are stored. The first request holds
 * a short lock that it renews, so that a process that dies frees the key soon.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { namespaceOf, newId, type Principal, ServiceError } from "@svc/contracts";
import { invalidRequest, type Redis, storeCall } from "@svc/service-kit";

const KEY = /^[\x20-\x7e]{1,255}$/;
const STORED_SECONDS = 600;
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

export function idempotencyKey(headers: Record<string, unknown>): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && KEY.test(key)) return key;
  throw invalidRequest([
    { path: "Idempotency-Key", problem: "must have 1 to 255 printable ASCII characters" },
  ]);
}

type WithCommands = Redis & {
  svcReplace: (key: string, found: string, text: string, lifeMs: number) => Promise<number>;
};

export class Idempotency {
  readonly #redis: WithCommands;

  constructor(redis: Redis) {
    redis.defineCommand("svcReplace", { numberOfKeys: 1, lua: REPLACE });
    this.#redis = redis as WithCommands;
  }

  async once(
    principal: Principal,
    key: string,
    body: unknown,
    left: AbortSignal,
    run: (hasWaiters: HasWaiters) => Promise<unknown>,
  ): Promise<Outcome> {
    const digest = (text: string) => createHash("sha256").update(text).digest("base64url");
    const store = `svc:idempotency:${digest(`${namespaceOf(principal, { kind: "user" })}\n${key}`)}`;
    const entry: Entry = { body: digest(canonicalJson(body)), owner: newId() };
    for (let pause: number = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.most)) {
      const taken = await storeCall(() => this.#redis.set(store, JSON.stringify(entry), "PX", LOCK_MS, "NX"));
      if (taken === "OK") return { answer: await this.#own(store, entry, run), replayed: false };
      const text = await storeCall(() => this.#redis.get(store));
      if (text === null) continue;
      const found = JSON.parse(text) as Entry;
      if (found.body !== entry.body) throw new ServiceError("idempotency_key_reused");
      if (found.answer !== undefined) return { answer: found.answer, replayed: true };
      await storeCall(() => this.#redis.set(`${store}:waiter`, "1", "PX", WAITER_MS));
      await sleep(pause, undefined, { signal: left }).catch(() => left.throwIfAborted());
    }
  }

  async #own(
    store: string,
    entry: Entry,
    run: (hasWaiters: HasWaiters) => Promise<unknown>,
  ): Promise<unknown> {
    const lock = JSON.stringify(entry);
    const renewal = setInterval(() => {
      this.#redis.svcReplace(store, lock, lock, LOCK_MS).catch(() => undefined);
    }, RENEW_MS);
    try {
      const answer = await run(async () => (await this.#redis.exists(`${store}:waiter`)) === 1);
      const kept = JSON.stringify({ ...entry, answer });
      // An answer that cannot be stored is still the answer.
      await this.#redis.svcReplace(store, lock, kept, STORED_SECONDS * 1000).catch(() => undefined);
      return answer;
    } catch (error) {
      await this.#redis.svcReplace(store, lock, "", 0).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewal);
    }
  }
}

/** JSON with sorted keys: bodies that differ in key order only are the same. */
export function canonicalJson(value: unknown): string {
  try {
    return JSON.stringify(value, sortedKeys) ?? "";
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ServiceError("invalid_json", "The request body is nested too deeply.");
  }
}

function sortedKeys(_key: string, item: unknown): unknown {
  return typeof item === "object" && item !== null && !Array.isArray(item)
    ? Object.fromEntries(Object.entries(item).sort(([left], [right]) => (left < right ? -1 : 1)))
    : item;
}
