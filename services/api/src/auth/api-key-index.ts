/**
 * Finds the record of an API key. Digests are indexed by a keyed hash, with a new key in each process, and compared in constant
 * time. So timing reveals nothing about a stored digest. A look-up costs the same for any number of keys.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { type ApiKeyRecord, apiKeyDigest, apiKeyState } from "@svc/contracts";
import type { Caller } from "./claims.ts";
import { TokenRefused } from "./refused.ts";

const secret = randomBytes(32);
const macOf = (digest: Buffer) => createHmac("sha256", secret).update(digest).digest("base64");
/** The digest to compare with when no record was found, so that both cases take the same time. */
const NONE = randomBytes(32);

export class ApiKeyIndex {
  readonly #byMac = new Map<string, { digest: Buffer; record: ApiKeyRecord }>();

  constructor(records: readonly ApiKeyRecord[]) {
    for (const record of records) {
      const digest = Buffer.from(record.sha256, "hex");
      this.#byMac.set(macOf(digest), { digest, record });
    }
  }

  get size(): number {
    return this.#byMac.size;
  }

  ids(): Set<string> {
    return new Set([...this.#byMac.values()].map(({ record }) => record.id));
  }

  /** Trusts that `key` has the form of an API key. Throws TokenRefused. */
  callerOf(key: string, nowMs: number): Caller {
    const digest = Buffer.from(apiKeyDigest(key), "hex");
    const found = this.#byMac.get(macOf(digest));
    if (!timingSafeEqual(found?.digest ?? NONE, digest) || found === undefined) {
      throw new TokenRefused("unknown_api_key", "unknown API key");
    }
    const { id, tenant, user, plan } = found.record;
    const state = apiKeyState(found.record, nowMs);
    if (state !== "active") throw new TokenRefused(state, `the API key ${id} is ${state}`);
    return { principal: { tenantId: tenant, userId: user }, planId: plan, evidence: { api_key: id } };
  }
}
