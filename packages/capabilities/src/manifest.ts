/**
 * Execution manifests: compact JWS (EdDSA over Ed25519) with which the worker authorises one execute request. The worker signs with
 * its private key; the runner verifies with public keys and cannot make manifests. A manifest is bound to the request's body and
 * grant by hashes, to its inputs and its output session by a list, to a short time, and to one use. Ids of files and sessions are
 * the handles in the request; tenant, user and session key are hashed. Pure except for randomness; the caller passes in the time.
 * Node's own Ed25519 is synchronous and cheaper than a round trip to the thread pool.
 */
import { createHash, sign, verify } from "node:crypto";
import { type ManifestScope, manifestScopeSchema, newId } from "@svc/contracts";
import { z } from "zod";
import { CLOCK_SKEW_SECONDS } from "./envelope.ts";
import type { SigningKey, VerifyingKey } from "./manifest-keys.ts";

export type ManifestReason =
  | "malformed"
  | "bad_signature"
  | "expired"
  | "not_yet_valid"
  | "replayed"
  | "body_mismatch"
  | "scope_mismatch"
  | "unsupported_version";

/** A refused manifest. The message contains nothing of the manifest. */
export class ManifestRefused extends Error {
  readonly reason: ManifestReason;

  constructor(reason: ManifestReason) {
    super(`manifest refused: ${reason}`);
    this.name = "ManifestRefused";
    this.reason = reason;
  }
}

const ALG = "EdDSA";
const TYP = "svc-manifest+jwt";
/** The newest version and the one before it are accepted; there is one so far. */
const NEWEST_VERSION = 1;
const ACCEPTED_VERSIONS: readonly unknown[] = [NEWEST_VERSION];
/** No manifest is valid for longer, whatever its claims say. This bounds how much must be remembered against replay. */
const MAX_LIFE_SECONDS = 600;
const MAX_JTI_CHARS = 128;
const BASE64URL = /^[A-Za-z0-9_-]+$/;
const SIGNATURE_BYTES = 64;

/** Ignores unknown claims. A missing hash is well-formed, but matches no request. */
const claimsSchema = manifestScopeSchema.extend({
  jti: z.string().min(1).max(MAX_JTI_CHARS),
  iat: z.number().int(),
  nbf: z.number().int(),
  exp: z.number().int(),
  tool_call_socket: z.boolean(),
  execute_body_sha256: z.string().optional(),
  egress_grant_sha256: z.string().optional(),
});
export type ManifestClaims = z.infer<typeof claimsSchema>;

/** What a manifest is bound to. `body`: canonical text of the request's body without manifest and grant. `grant`: the grant's text. */
export interface Bound {
  body: string;
  grant: string;
}

export function signManifest(
  { kid, key }: SigningKey,
  scope: ManifestScope,
  bound: Bound,
  { now, ttl, toolSocket = false }: { now: number; ttl: number; toolSocket?: boolean },
): string {
  const claims = {
    ...scope,
    v: NEWEST_VERSION,
    jti: newId(),
    iat: now,
    nbf: now,
    exp: now + Math.min(ttl, MAX_LIFE_SECONDS),
    tool_call_socket: toolSocket,
    execute_body_sha256: sha256(bound.body),
    egress_grant_sha256: sha256(bound.grant),
  };
  const signed = `${encode({ alg: ALG, typ: TYP, kid })}.${encode(claims)}`;
  return `${signed}.${sign(null, Buffer.from(signed), key).toString("base64url")}`;
}

/**
 * Checks in this order: form and type (`malformed`), signature (`bad_signature`), version, claims (`malformed`), time.
 * `lastSecond`: the last second in which the manifest could be accepted again, for replay protection.
 */
export function openManifest(
  keys: readonly VerifyingKey[],
  token: unknown,
  now: number,
): { claims: ManifestClaims; lastSecond: number } {
  const parts = typeof token === "string" ? token.split(".") : [];
  const [head, body, signature] = parts;
  if (parts.length !== 3 || !head || !body || !signature) throw new ManifestRefused("malformed");
  const header = object(head);
  if (header.typ !== TYP || header.crit !== undefined) throw new ManifestRefused("malformed");
  if (header.alg !== ALG || !isSigned(keys, header.kid, `${head}.${body}`, signature)) {
    throw new ManifestRefused("bad_signature");
  }
  const content = object(body);
  if (!ACCEPTED_VERSIONS.includes(content.v)) throw new ManifestRefused("unsupported_version");
  const parsed = claimsSchema.safeParse(content);
  if (!parsed.success) throw new ManifestRefused("malformed");
  const { iat, nbf, exp } = parsed.data;
  if (Math.max(iat, nbf) > now + CLOCK_SKEW_SECONDS) throw new ManifestRefused("not_yet_valid");
  const lastSecond = Math.min(exp, iat + MAX_LIFE_SECONDS) + CLOCK_SKEW_SECONDS;
  if (lastSecond < now) throw new ManifestRefused("expired");
  return { claims: parsed.data, lastSecond };
}

/** The inputs and the output session of an execute request, with the ids in the request. */
export interface RequestScope {
  files: readonly { id: string; storage_session_id: string; name: string }[];
  outputSession: string | undefined;
}

/** Throws unless the manifest was made for this body and this grant. */
export function checkBinding(claims: ManifestClaims, bound: Bound): void {
  if (claims.execute_body_sha256 !== sha256(bound.body)) throw new ManifestRefused("body_mismatch");
  if (claims.egress_grant_sha256 !== sha256(bound.grant)) throw new ManifestRefused("scope_mismatch");
}

/** Throws unless the manifest lists exactly the inputs of the request, and names its output session. */
export function checkScope(claims: ManifestClaims, request: RequestScope): void {
  const fetched = request.files.map(({ id, storage_session_id, name }) => [storage_session_id, id, name]);
  const stated = claims.input_files.map(({ id, session_id, name }) => [session_id, id, name]);
  const sessions = new Set(request.files.map(({ storage_session_id }) => storage_session_id));
  const fits =
    same(fetched, stated) &&
    same([...sessions], claims.read_sessions) &&
    request.outputSession === claims.output_session_id;
  if (!fits) throw new ManifestRefused("scope_mismatch");
}

/** Verifies with the keys that `kid` names. For an unknown `kid`, tries every key. */
function isSigned(keys: readonly VerifyingKey[], kid: unknown, signed: string, signature: string): boolean {
  const bytes = strictBase64url(signature);
  if (bytes.length !== SIGNATURE_BYTES) return false;
  const data = Buffer.from(signed);
  const named = keys.filter(({ kids }) => kids.includes(kid as string));
  return (named.length > 0 ? named : keys).some(({ key }) => verify(null, data, key, bytes));
}

function same(left: readonly unknown[], right: readonly unknown[]): boolean {
  const texts = (items: readonly unknown[]) =>
    JSON.stringify(items.map((item) => JSON.stringify(item)).sort());
  return left.length === right.length && texts(left) === texts(right);
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

function object(part: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(strictBase64url(part).toString("utf8"));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // No JSON.
  }
  throw new ManifestRefused("malformed");
}

/** Accepts only one text per value: refuses an encoding with stray bits in its last character. */
function strictBase64url(part: string): Buffer {
  const bytes = Buffer.from(part, "base64url");
  if (!BASE64URL.test(part) || bytes.toString("base64url") !== part) throw new ManifestRefused("malformed");
  return bytes;
}

/** SHA-256 of the text's UTF-8 bytes, base64url without padding. */
export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
