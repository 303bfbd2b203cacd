/**
 * Continuation tokens: they say which execution to resume, and from which pause. They are opaque to callers, authenticated, and bound to
 * the principal by tenant and user alone. `svc1.<execution id>.<round>.<principal tag>.<mac>`. Pure.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from "node:crypto";
import { ID_PATTERN, type Principal, ServiceError } from "@svc/contracts";

const VERSION = "svc1";
const MAX_CHARS = 512;
const TAG_BYTES = 12;

export interface Continuation {
  executionId: string;
  /** The round that the pause ended. */
  round: number;
}

export class ContinuationTokens {
  readonly #key: KeyObject;

  /** `secret`: SVC_CONTINUATION_SECRET; when it is empty, the key is derived from the internal token. */
  constructor(secret: string, internalToken: string) {
    const [material, info] = secret === "" ? [internalToken, "from-internal-token"] : [secret, "own-secret"];
    // A KeyObject, because with raw bytes Node would import the key for each token, which costs more than the rest.
    this.#key = createSecretKey(Buffer.from(hkdfSync("sha256", material, "svc-continuation:v1", info, 32)));
  }

  mint({ executionId, round }: Continuation, principal: Principal): string {
    const text = `${VERSION}.${executionId}.${round}.${this.#tag(principal)}`;
    return `${text}.${this.#mac(text)}`;
  }

  /** Throws `invalid_continuation_token` for a token that this service did not mint, and `forbidden` for another principal's token. */
  open(token: string, principal: Principal): Continuation {
    const [version, executionId = "", round = "", tag = "", mac = "", ...rest] = token
      .slice(0, MAX_CHARS + 1)
      .split(".");
    const text = `${version}.${executionId}.${round}.${tag}`;
    const genuine =
      token.length <= MAX_CHARS && version === VERSION && rest.length === 0 && equal(mac, this.#mac(text));
    if (!genuine || !ID_PATTERN.test(executionId)) throw new ServiceError("invalid_continuation_token");
    if (!equal(tag, this.#tag(principal))) throw new ServiceError("forbidden");
    return { executionId, round: Number(round) };
  }

  #tag({ tenantId, userId }: Principal): string {
    return createHmac("sha256", this.#key)
      .update(`principal\n${JSON.stringify([tenantId, userId])}`)
      .digest()
      .subarray(0, TAG_BYTES)
      .toString("base64url");
  }

  #mac(text: string): string {
    return createHmac("sha256", this.#key).update(`token\n${text}`).digest("base64url");
  }
}

function equal(given: string, wanted: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(wanted)];
  return left.length === right.length && timingSafeEqual(left, right);
}
