/**
 * Verifies a token: its form, its key, its signature and its claims, in this order. The key decides the algorithm; the header must
 * name the same one. A signature has exactly one accepted encoding. Throws only TokenRefused.
 */

import type { VerificationKey } from "@svc/service-kit/credentials/key-text";
import { compactVerify, errors } from "jose";
import { z } from "zod";
import { type Caller, type ClaimRules, callerOf } from "./claims.ts";
import { TokenRefused } from "./refused.ts";
import type { VerifiedTokens } from "./verified-tokens.ts";

export interface VerifierDeps {
  keys: { get: (kid: string) => VerificationKey | undefined };
  rules: ClaimRules;
  verified: VerifiedTokens;
  /** Seconds since 1970. */
  now: () => number;
}

const headerSchema = z.object({
  alg: z.string(),
  kid: z.string().min(1),
  typ: z.literal("JWT").optional(),
  crit: z.undefined().optional(),
  b64: z.undefined().optional(),
});

const MAX_SHOWN_KID_CHARS = 64;

export async function verifyToken(
  token: string,
  { keys, rules, verified, now }: VerifierDeps,
): Promise<Caller> {
  const [header = ""] = token.split(".", 1);
  const { alg, kid } = headerOf(header);
  const key = keys.get(kid);
  if (key === undefined) throw new TokenRefused("unknown_key", `unknown kid ${JSON.stringify(shown(kid))}`);
  if (alg !== key.algorithm)
    throw new TokenRefused("wrong_algorithm", "an algorithm that does not fit the key");
  return callerOf(await verified.payloadOf(token, key, () => signedPayload(token, key)), rules, now());
}

async function signedPayload(token: string, { key, algorithm }: VerificationKey): Promise<unknown> {
  const [, , signature = ""] = token.split(".");
  if (Buffer.from(signature, "base64url").toString("base64url") !== signature) {
    throw new TokenRefused("malformed", "a signature that is not canonical");
  }
  try {
    const { payload } = await compactVerify(token, key, { algorithms: [algorithm] });
    return jsonOf(Buffer.from(payload));
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed)
      throw new TokenRefused("bad_signature", "bad signature");
    if (error instanceof errors.JOSEError) throw new TokenRefused("malformed", `no valid JWS: ${error.code}`);
    throw error;
  }
}

function headerOf(part: string): z.infer<typeof headerSchema> {
  const result = headerSchema.safeParse(jsonOf(Buffer.from(part, "base64url")));
  if (result.success) return result.data;
  const names = new Set(result.error.issues.map(({ path }) => String(path[0] ?? "form")));
  throw new TokenRefused("malformed", `header missing or wrong: ${[...names].join(", ")}`);
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new TokenRefused("malformed", "a part that is not JSON");
  }
}

const shown = (kid: string) => kid.slice(0, MAX_SHOWN_KID_CHARS).toWellFormed();
