/**
 * One public key as text: PEM (line ends may be written as `\n`), base64 of DER (SPKI), base64 of PEM, or a JWK.
 * Only the type of the key decides its algorithm, so a token can never choose how a key is used. The texts come from the
 * operator. Refuses private keys and keys of other types, with messages that never show the key. Pure.
 */
import { createPublicKey, type JsonWebKey, type KeyObject } from "node:crypto";
import { z } from "zod";

export type Algorithm = "EdDSA" | "RS256";

export interface VerificationKey {
  algorithm: Algorithm;
  key: KeyObject;
}

/** Thrown when a text is not a usable public key. */
export class KeyError extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = "KeyError";
  }
}

const PEM = /^-----BEGIN ((RSA )?PUBLIC KEY)-----\s[A-Za-z0-9+/=\s]+-----END \1-----\s*$/;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
const MIN_RSA_BITS = 2048;

export const jwkSchema = z.object({
  kid: z.string().min(1).optional(),
  kty: z.string(),
  use: z.literal("sig").optional(),
  alg: z.string().optional(),
  key_ops: z.array(z.string()).optional(),
  crv: z.string().optional(),
  x: z.string().optional(),
  n: z.string().optional(),
  e: z.string().optional(),
  /** Only a private key has this field, so it must be absent. */
  d: z.undefined().optional(),
});
export type Jwk = z.infer<typeof jwkSchema>;

export function parseKeyText(text: string): VerificationKey & { kid?: string | undefined } {
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) {
    const jwk = jwkSchema.safeParse(jsonOf(trimmed));
    if (!jwk.success) throw new KeyError("is no public JWK for signatures");
    return { ...keyOfJwk(jwk.data), kid: jwk.data.kid };
  }
  const pem = trimmed.replaceAll("\\n", "\n");
  if (pem.startsWith("-----")) return keyOfPem(pem);
  const compact = trimmed.replaceAll(/\s/g, "");
  if (!BASE64.test(compact)) throw new KeyError("is neither PEM, base64 nor a JWK");
  const bytes = Buffer.from(compact, "base64");
  const decoded = bytes.toString("latin1").trim();
  if (decoded.startsWith("-----")) return keyOfPem(decoded);
  return checked(() => createPublicKey({ key: bytes, format: "der", type: "spki" }));
}

export function keyOfJwk({ kty, crv, x, n, e, alg, key_ops }: Jwk): VerificationKey {
  if (key_ops !== undefined && !key_ops.includes("verify"))
    throw new KeyError("is a JWK that may not verify");
  const key = (kty === "OKP" ? { kty, crv, x } : { kty, n, e }) as JsonWebKey;
  const found = checked(() => createPublicKey({ key, format: "jwk" }));
  if (alg !== undefined && alg !== found.algorithm && !(alg === "Ed25519" && found.algorithm === "EdDSA")) {
    throw new KeyError("is a JWK for another algorithm");
  }
  return found;
}

function keyOfPem(pem: string): VerificationKey {
  if (pem.includes("PRIVATE")) throw new KeyError("is a private key; only the public one belongs here");
  if (!PEM.test(pem)) throw new KeyError("is no PEM of a public key");
  return checked(() => createPublicKey(pem));
}

function checked(read: () => KeyObject): VerificationKey {
  let key: KeyObject;
  try {
    key = read();
  } catch {
    throw new KeyError("cannot be read as a public key");
  }
  const kind = key.asymmetricKeyType;
  if (kind === "ed25519") return { algorithm: "EdDSA", key };
  if (kind !== "rsa") throw new KeyError(`is a key of the kind ${kind}, not Ed25519 or RSA`);
  if ((key.asymmetricKeyDetails?.modulusLength ?? 0) < MIN_RSA_BITS) {
    throw new KeyError(`is an RSA key of less than ${MIN_RSA_BITS} bits`);
  }
  return { algorithm: "RS256", key };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
