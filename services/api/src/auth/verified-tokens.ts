/**
 * What tokens with a good signature say. A caller sends the same token with many requests, and checking a signature is the most
 * that authentication costs. The same text is good for the same key for ever; everything that depends on the time or the settings
 * is checked again for each request.
 */
import { createHash } from "node:crypto";
import type { VerificationKey } from "@svc/service-kit/credentials/key-text";

/** The ones that were used last. */
const MOST = 1000;

export class VerifiedTokens {
  readonly #known = new Map<string, { key: VerificationKey; payload: unknown }>();

  /** The payload, from `verify` where this very token and key are not known. What `verify` throws is not kept. */
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
