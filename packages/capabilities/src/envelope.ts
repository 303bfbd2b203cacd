/**
 * The sealed envelope of grants, handles and callback tokens: `ceg1.<iv>.<ciphertext>.<tag>`, base64url without padding,
 * AES-256-GCM with a random 12-byte IV, a 16-byte tag and fixed associated data. The holder of a token can present it
 * but neither read nor change it. Pure except for randomness; the caller passes in the time.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";

export type TokenType = "grant" | "session" | "object" | "ptc-callback";
export type RefusalReason =
  | "missing_secret"
  | "weak_secret"
  | "malformed"
  | "expired"
  | "wrong_type"
  | "scope_mismatch";

/** A refused token. `reason` may be made public; the message contains nothing of the token. */
export class TokenRefused extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason) {
    super(`token refused: ${reason}`);
    this.name = "TokenRefused";
    this.reason = reason;
  }
}

export interface Envelope {
  v: 1;
  typ: TokenType;
  iat: number;
  exp: number;
}

const PREFIX = "ceg1";
const ASSOCIATED_DATA = Buffer.from("svc-egress-grant:v1");
const HASHING_KEY = "svc-manifest-hash:v1";
const COPYING_KEY = "svc-input-copy:v1";
const IV_BYTES = 12;
const TAG_BYTES = 16;
const MIN_SECRET_BYTES = 32;
/** Enough for a grant that lists 256 inputs with the longest names. */
export const MAX_TOKEN_CHARS = 768 * 1024;
/** Tolerated difference between the clocks of two components. */
export const CLOCK_SKEW_SECONDS = 30;
const BASE64URL = /^[A-Za-z0-9_-]+$/;

/** Key objects, prepared once: converting bytes to a key for each token would cost more than sealing it. */
export interface SealKeys {
  /** Seals and opens. */
  current: KeyObject;
  /** Opens only: tokens sealed before the last change of the secret. */
  previous?: KeyObject;
  /** Hashes tenant, user and session key, which a manifest must not show. */
  hashing: KeyObject;
  /** Makes the keys under which runners cache objects. */
  copying: KeyObject;
}

/** Derives the keys from the configured secrets. Throws TokenRefused for an absent or short secret. */
export function sealKeys(secret: string, previous = ""): SealKeys {
  const keys = {
    current: deriveKey(secret),
    hashing: createSecretKey(Buffer.from(hkdfSync("sha256", secret, "", HASHING_KEY, 32))),
    copying: createSecretKey(Buffer.from(hkdfSync("sha256", secret, "", COPYING_KEY, 32))),
  };
  return previous === "" ? keys : { ...keys, previous: deriveKey(previous) };
}

function deriveKey(secret: string): KeyObject {
  if (secret === "") throw new TokenRefused("missing_secret");
  if (Buffer.byteLength(secret) < MIN_SECRET_BYTES) throw new TokenRefused("weak_secret");
  return createSecretKey(createHash("sha256").update(secret).digest());
}

export function seal(keys: SealKeys, content: Envelope & Record<string, unknown>): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", keys.current, iv, { authTagLength: TAG_BYTES });
  cipher.setAAD(ASSOCIATED_DATA);
  const body = Buffer.concat([cipher.update(JSON.stringify(content), "utf8"), cipher.final()]);
  return [PREFIX, ...[iv, body, cipher.getAuthTag()].map((part) => part.toString("base64url"))].join(".");
}

/**
 * Opens a token of type `typ` at the time `now` (seconds since 1970). Checks in this order: form and authenticity
 * (`malformed`), type (`wrong_type`), `iat` in the future (`malformed`), `exp` in the past (`expired`).
 */
export function open(
  keys: SealKeys,
  token: unknown,
  typ: TokenType,
  now: number,
): Envelope & Record<string, unknown> {
  const content = decrypt(keys, token);
  if (content.typ !== typ) throw new TokenRefused("wrong_type");
  if (content.iat > now + CLOCK_SKEW_SECONDS) throw new TokenRefused("malformed");
  if (content.exp + CLOCK_SKEW_SECONDS < now) throw new TokenRefused("expired");
  return content;
}

function decrypt(keys: SealKeys, token: unknown): Envelope & Record<string, unknown> {
  const parts = splitToken(token);
  for (const key of [keys.current, keys.previous]) {
    if (key === undefined) continue;
    const text = tryDecrypt(key, parts);
    if (text !== undefined) return parseEnvelope(text);
  }
  throw new TokenRefused("malformed");
}

function splitToken(token: unknown): [Buffer, Buffer, Buffer] {
  if (typeof token !== "string" || token.length > MAX_TOKEN_CHARS) throw new TokenRefused("malformed");
  const [prefix, ...rest] = token.split(".");
  if (prefix !== PREFIX || rest.length !== 3) throw new TokenRefused("malformed");
  const [iv, body, tag] = rest.map(strictBase64url) as [Buffer, Buffer, Buffer];
  if (iv.length !== IV_BYTES || tag.length !== TAG_BYTES) throw new TokenRefused("malformed");
  return [iv, body, tag];
}

/** Accepts only one text per value: refuses an encoding with stray bits in its last character. */
function strictBase64url(part: string): Buffer {
  const bytes = Buffer.from(part, "base64url");
  if (!BASE64URL.test(part) || bytes.toString("base64url") !== part) throw new TokenRefused("malformed");
  return bytes;
}

function tryDecrypt(key: KeyObject, [iv, body, tag]: [Buffer, Buffer, Buffer]): string | undefined {
  const decipher = createDecipheriv("aes-256-gcm", key, iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(ASSOCIATED_DATA);
  decipher.setAuthTag(tag);
  try {
    return Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

function parseEnvelope(text: string): Envelope & Record<string, unknown> {
  const content = parseJson(text) as (Envelope & Record<string, unknown>) | null | undefined;
  if (content?.v !== 1 || !Number.isFinite(content.iat) || !Number.isFinite(content.exp)) {
    throw new TokenRefused("malformed");
  }
  return content;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
