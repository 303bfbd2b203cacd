/**
 * Idempotency-Key: the same key and body of a principal give the stored 200 answer for 600 s; another body is refused.
 * Bodies that differ in the order of keys are the same, but for the order within objects of very many keys.
 */
import { createHash } from "node:crypto";
import { canonicalArguments, namespaceOf, type Principal } from "@svc/contracts";
import { invalidRequest, type Redis } from "@svc/service-kit";
import { type HasWaiters, Once, type Outcome } from "../once/once.ts";

const KEY = /^[\x20-\x7e]{1,255}$/;
const STORED_SECONDS = 600;
/** More would take long to sort. */
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

  constructor(redis: Redis) {
    this.#once = new Once(redis, { conflict: "idempotency_key_reused", storedSeconds: STORED_SECONDS });
  }

  once(
    principal: Principal,
    key: string,
    body: unknown,
    left: AbortSignal,
    run: (hasWaiters: HasWaiters) => Promise<unknown>,
  ): Promise<Outcome> {
    const owned = `${namespaceOf(principal, { kind: "user" })}\n${key}`;
    const store = `svc:idempotency:${createHash("sha256").update(owned).digest("base64url")}`;
    return this.#once.run(
      { store, body: canonicalArguments(body, MAX_SORTED_KEYS), left },
      ({ hasWaiters }) => run(hasWaiters),
    );
  }
}
