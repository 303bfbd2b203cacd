/** A token signer of the test: mints access tokens with node:crypto alone, right ones and any wrong one. */
import {
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  sign,
} from "node:crypto";

export const KID = "k1";
export const seconds = () => Date.now() / 1000;

export interface Mint {
  header?: Record<string, unknown>;
  claims?: Record<string, unknown>;
}

export interface Signer {
  privateKey: KeyObject;
  publicKey: KeyObject;
  pem: string;
  /** A token with the header and claims of a right one, changed as told. `undefined` removes a member. */
  mint: (change?: Mint) => string;
}

export const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

export function rightClaims(): Record<string, unknown> {
  const now = Math.floor(seconds());
  return {
    iss: "librechat",
    aud: "codeapi",
    sub: "u1",
    jti: randomUUID(),
    iat: now,
    nbf: now,
    exp: now + 300,
    principal_source: "librechat_jwt",
    auth_context_hash: "abc123",
    tenant_id: "t1",
    role: "USER",
  };
}

export function newSigner(type: "ed25519" | "rsa" = "ed25519"): Signer {
  const pair =
    type === "rsa" ? generateKeyPairSync("rsa", { modulusLength: 2048 }) : generateKeyPairSync(type);
  return signerOf(pair.privateKey);
}

/** The signer with this key. */
export function signerOf(privateKey: KeyObject): Signer {
  const publicKey = createPublicKey(privateKey);
  const isRsa = privateKey.asymmetricKeyType === "rsa";
  const alg = isRsa ? "RS256" : "EdDSA";
  return {
    privateKey,
    publicKey,
    pem: publicKey.export({ type: "spki", format: "pem" }) as string,
    mint: ({ header, claims } = {}) => {
      const input = inputOf({ alg, typ: "JWT", kid: KID, ...header }, { ...rightClaims(), ...claims });
      const digest = isRsa ? "sha256" : null;
      return `${input}.${sign(digest, Buffer.from(input), privateKey).toString("base64url")}`;
    },
  };
}

/** A token whose "signature" is an HMAC over it with the given bytes as its key. */
export function mintHmac(secret: string | Buffer, { header, claims }: Mint = {}): string {
  const input = inputOf({ alg: "HS256", typ: "JWT", kid: KID, ...header }, { ...rightClaims(), ...claims });
  return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
}

export const inputOf = (header: unknown, payload: unknown) => `${part(header)}.${part(payload)}`;
