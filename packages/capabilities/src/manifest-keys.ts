/**
 * Parses the Ed25519 keys of execution manifests from the text of a variable, once at start. The id of a key is its JWK
 * thumbprint (RFC 7638), which signer and verifier both compute. A key set may give a key another id as well. Verifiers
 * refuse private keys. Error messages contain no part of a key. Pure.
 */
import { createHash, createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from "node:crypto";

export interface SigningKey {
  kid: string;
  key: KeyObject;
}

export interface VerifyingKey {
  kids: readonly string[];
  key: KeyObject;
}

/** Thrown when the text is not a key of the expected kind. */
export class BadKey extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = "BadKey";
  }
}

const NO_PRIVATE_KEY = "must be an Ed25519 private key: PEM or base64 DER (PKCS8)";
const NO_PUBLIC_KEY =
  "must hold Ed25519 public keys and nothing private: PEM, base64 DER (SPKI), a comma list of them, or a JWKS";

/** `text`: PEM (line breaks may be written as `\n`) or base64 DER, PKCS8. */
export function parseSigningKey(text: string): SigningKey {
  const key = attempt(NO_PRIVATE_KEY, () => {
    const plain = unescaped(text);
    return plain.includes("-----BEGIN")
      ? createPrivateKey(plain)
      : createPrivateKey({ key: fromBase64(plain), format: "der", type: "pkcs8" });
  });
  if (key.asymmetricKeyType !== "ed25519") throw new BadKey(NO_PRIVATE_KEY);
  return { kid: thumbprint(createPublicKey(key)), key };
}

/** `text`: at least one key as PEM or base64 DER (SPKI), separated by commas, or a JWKS. */
export function parseVerifyingKeys(text: string): VerifyingKey[] {
  const keys = attempt(NO_PUBLIC_KEY, () => {
    const plain = unescaped(text).trim();
    return plain.startsWith("{") ? keySet(plain) : plain.split(",").map(single);
  });
  if (keys.length === 0) throw new BadKey(NO_PUBLIC_KEY);
  return keys;
}

function single(text: string): VerifyingKey {
  const plain = text.trim();
  if (!plain.includes("-----BEGIN")) {
    return verifying(createPublicKey({ key: fromBase64(plain), format: "der", type: "spki" }));
  }
  // Node would silently derive the public key from a private one.
  if (!/^-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----$/.test(plain))
    throw new BadKey(NO_PUBLIC_KEY);
  return verifying(createPublicKey(plain));
}

function keySet(text: string): VerifyingKey[] {
  const { keys } = JSON.parse(text) as { keys: (JsonWebKey & { kid?: unknown })[] };
  return keys.map((jwk) => {
    if (jwk.d !== undefined) throw new BadKey(NO_PUBLIC_KEY);
    return verifying(createPublicKey({ key: jwk, format: "jwk" }), jwk.kid);
  });
}

function verifying(key: KeyObject, kid?: unknown): VerifyingKey {
  if (key.asymmetricKeyType !== "ed25519") throw new BadKey(NO_PUBLIC_KEY);
  return { kids: [thumbprint(key), ...(typeof kid === "string" ? [kid] : [])], key };
}

function thumbprint(key: KeyObject): string {
  const { crv, kty, x } = key.export({ format: "jwk" });
  return createHash("sha256").update(JSON.stringify({ crv, kty, x })).digest("base64url");
}

const unescaped = (text: string) => text.replaceAll("\\n", "\n");

function fromBase64(text: string): Buffer {
  const compact = text.replace(/\s+/g, "");
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(compact)) throw new BadKey("not base64");
  return Buffer.from(compact, "base64");
}

function attempt<T>(problem: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new BadKey(problem);
  }
}
