/**
 * A cache for the payloads of tokens with a valid signature. A caller sends the same token with many requests, and the signature check
 * is the largest cost of authentication. A signature that is valid for a key stays valid; everything that depends on the time or the
 * settings is checked again for each request.
 */
import { createHash } from "node:crypto";
import type { VerificationKey } from "@svc/service-kit/credentials/key-text";

/** Size of the cache; the least recently used token is evicted. */
const MOST = 1000;

export class VerifiedTokens {
  readonly #known = new Map<string, { key: VerificationKey; payload: unknown }>();

  /** The payload; calls `verify` unless this token is cached for this key. A failure of `verify` is not cached. */
  async payloadOf(token: string, key: VerificationKey, verify: () => Promise<unknown>): Promise<unknown> {
    const digest = createHash("sha256").update(token).digest("base64url");
    const known = this.#known.get(digest);
    this.#known.delete(digest);
    const payload = known?.key === key ? known.payload : await verify();
    if (this.#known.size >= MOST) this.#known.delete(this.#known.keys().next().value ?? "");
    this.#known.set(digest, { key, payload });
    return payload;
  }
}
