/**
 * Idempotency-Key: a repeat with the same principal, key and body gets the stored successful answer for 600 s. Another body is refused.
 * Stored answers count towards the principal's limit of stored bytes. A large answer without room is not stored; its repeat runs again.
 * The order of keys in a body does not matter, except within objects that have very many keys.
 */
import { createHash } from "node:crypto";
import { canonicalArguments, namespaceOf, type Principal } from "@svc/contracts";
import {
  invalidRequest,
  type LuaCommand,
  luaCommand,
  type Redis,
  STORED,
  StoredBytes,
  storedKeys,
} from "@svc/service-kit";
import { type HasWaiters, Once, type Outcome, type OwnEntry } from "../once/once.ts";

const KEY = /^[\x20-\x7e]{1,255}$/;
const STORED_SECONDS = 600;
const KEEP = new URL("./lua/keep-answer.lua", import.meta.url);
/** Answers up to this size are always stored, so that one key never makes two jobs. */
const SMALL_BYTES = 1024;
/** Sorting more keys would take too long. */
const MAX_SORTED_KEYS = 1000;

export function idempotencyKey(headers: Record<string, unknown>): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && KEY.test(key)) return key;
  throw invalidRequest([
    { path: "Idempotency-Key", problem: "must have 1 to 255 printable ASCII characters" },
  ]);
}

export class Idempotency {
  readonly #once: Once;
  readonly #keep: LuaCommand<number>;
  readonly #stored: StoredBytes;

  constructor(redis: Redis, stored = new StoredBytes(redis, 0)) {
    this.#once = new Once(redis, { conflict: "idempotency_key_reused", storedSeconds: STORED_SECONDS });
    this.#keep = luaCommand(redis, "svcKeepAnswer", [STORED, KEEP], 3);
    this.#stored = stored;
  }

  once(
    principal: Principal,
    key: string,
    body: unknown,
    left: AbortSignal,
    run: (hasWaiters: HasWaiters) => Promise<unknown>,
  ): Promise<Outcome> {
    const namespace = namespaceOf(principal, { kind: "user" });
    const digest = createHash("sha256").update(`${namespace}\n${key}`).digest("base64url");
    return this.#once.run(
      {
        store: `svc:idempotency:${digest}`,
        body: canonicalArguments(body, MAX_SORTED_KEYS),
        left,
        keep: (entry, answer) => this.#keepAnswer(namespace, entry, answer),
      },
      ({ hasWaiters }) => run(hasWaiters),
    );
  }

  #keepAnswer(namespace: string, entry: OwnEntry, answer: unknown): Promise<number> {
    const text = entry.with(answer);
    const bytes = Buffer.byteLength(text);
    const most = bytes > SMALL_BYTES ? this.#stored.most : 0;
    const { store, lock, lifeMs } = entry;
    return this.#keep(store, ...storedKeys(namespace), lock, text, lifeMs, bytes, most);
  }
}
