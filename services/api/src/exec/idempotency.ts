/**
 * Idempotency-Key: the same key and body of a principal give the stored 200 answer for 600 s; another body is refused.
 * Bodies are the same when their bytes are.
 */
import { createHash } from "node:crypto";
import { namespaceOf, type Principal } from "@svc/contracts";
import { invalidRequest, type Redis } from "@svc/service-kit";
import { type HasWaiters, Once, type Outcome } from "../once/once.ts";

export const IDEMPOTENCY_HEADER = "idempotency-key";
const KEY = /^[\x20-\x7e]{1,255}$/;
const STORED_SECONDS = 600;

export function idempotencyKey(headers: Record<string, unknown>): string | undefined {
  const key = headers[IDEMPOTENCY_HEADER];
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
    bodyDigest: string,
    left: AbortSignal,
    run: (hasWaiters: HasWaiters) => Promise<unknown>,
  ): Promise<Outcome> {
    const owned = `${namespaceOf(principal, { kind: "user" })}\n${key}`;
    const store = `svc:idempotency:${createHash("sha256").update(owned).digest("base64url")}`;
    return this.#once.run({ store, body: bodyDigest, left }, ({ hasWaiters }) => run(hasWaiters));
  }
}
