/**
 * Every kind of token of this package as its verifier sees it: how one is made, how one is opened, how it is said that
 * one is refused. All secrets and keys belong to one service, so that a token of one kind shown as another is refused
 * for its kind and not for its key. A new kind is one more entry.
 */
import { generateKeyPairSync, sign } from "node:crypto";
import {
  type Callback,
  type Grant,
  HandleIndex,
  issueGrant,
  ManifestRefused,
  openCallback,
  openGrant,
  openManifest,
  openObject,
  openSession,
  parseSigningKey,
  parseVerifyingKeys,
  type SealKeys,
  sealCallback,
  sealGrant,
  sealKeys,
  signManifest,
  TokenRefused,
} from "@svc/capabilities";
import { type GrantClaims, newId } from "@svc/contracts";

export const NOW = 1_800_000_000;
const LIFE = { v: 1, iat: NOW, exp: NOW + 300 } as const;

const newPair = () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  return { signing: parseSigningKey(privateKey), publicKey };
};
const keys = sealKeys("seal".repeat(8));
const foreignKeys = sealKeys("leas".repeat(8));
const [own, foreign] = [newPair(), newPair()];
const verifying = parseVerifyingKeys(own.publicKey);

const claims = (): GrantClaims => ({
  exec_id: newId(),
  tenant_id: "tenant",
  user_id: "user",
  session_key: "tenant:user:user",
  input_files: [{ id: newId(), session_id: "s".repeat(21), name: "a.csv" }],
  read_sessions: ["s".repeat(21)],
  output_session_id: "o".repeat(21),
  max_upload_bytes: 1000,
  max_output_files: 50,
  max_requests: 1000,
  max_tool_calls: 200,
  lifetime_seconds: 300,
});
export const newGrant = (): Grant => issueGrant(claims(), NOW, 900);
const grant = newGrant();
const [input] = grant.input_files as [Grant["input_files"][number]];
const otherGrant = newGrant();
const [otherInput] = otherGrant.input_files as [Grant["input_files"][number]];
const objectOf = (by: SealKeys) => new HandleIndex(by, grant).object(input.session_id, input.id, input.name);
const session = () =>
  openSession(keys, grant, new HandleIndex(keys, grant).session(input.session_id), "read", NOW);

const bound = { body: "{}", grant: sealGrant(keys, grant) };
const manifest = (key = own.signing) =>
  signManifest(key, new HandleIndex(keys, grant).manifestScope(), bound, { now: NOW, ttl: 300 });

const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const jws = (header: object, payload: object, key = own.signing.key) => {
  const signed = `${json(header)}.${json(payload)}`;
  return `${signed}.${sign(null, Buffer.from(signed), key).toString("base64url")}`;
};
const [, payload = ""] = manifest().split(".");
const stated = JSON.parse(Buffer.from(payload, "base64url").toString()) as Record<string, unknown>;
const HEADER = { alg: "EdDSA", typ: "svc-manifest+jwt", kid: own.signing.kid };

export interface TokenKind {
  name: string;
  /** A right token, another one each time. */
  make: () => string;
  /** Throws when the token is refused. */
  open: (token: unknown) => unknown;
  /** Whole tokens that somebody without the key, or with another right, could show, and the reason of each refusal. */
  forgeries: readonly (readonly [what: string, token: string, reason: string])[];
}

/** The reason of a refusal; undefined when the token was let in. Anything else that is thrown is a crash, and passes on. */
export function refusalOf({ open }: TokenKind, token: unknown): string | undefined {
  try {
    open(token);
    return undefined;
  } catch (error) {
    if (error instanceof TokenRefused || error instanceof ManifestRefused) return error.reason;
    throw error;
  }
}

const called: Callback = {
  grant_id: grant.grant_id,
  exec_id: grant.exec_id,
  session_id: grant.output_session_id,
  callback_token: newId(),
  allowed_tool_names: ["search"],
};
const callbackOf = (by: SealKeys, { iat, exp }: { iat: number; exp: number } = LIFE) =>
  sealCallback(by, called, iat, exp);
const callback = callbackOf(keys);

export const TOKEN_KINDS: readonly TokenKind[] = [
  {
    name: "grant",
    make: () => sealGrant(keys, newGrant()),
    open: (token) => openGrant(keys, token, NOW),
    forgeries: [
      ["of another secret", sealGrant(foreignKeys, grant), "malformed"],
      ["that has ended", sealGrant(keys, { ...grant, exp: NOW - 31 }), "expired"],
      ["of tomorrow", sealGrant(keys, { ...grant, iat: NOW + 31 }), "malformed"],
      ["that is a callback token", callback, "wrong_type"],
    ],
  },
  {
    name: "read handle of a session",
    make: () => new HandleIndex(keys, grant).session(input.session_id),
    open: (token) => openSession(keys, grant, token, "read", NOW),
    forgeries: [
      ["of another secret", new HandleIndex(foreignKeys, grant).session(input.session_id), "malformed"],
      ["of another grant", new HandleIndex(keys, otherGrant).session(input.session_id), "scope_mismatch"],
      [
        "of a session that the grant does not name",
        new HandleIndex(keys, grant).session(newId()),
        "scope_mismatch",
      ],
      ["that is the write handle", new HandleIndex(keys, grant).output, "scope_mismatch"],
      ["that is a callback token", callback, "wrong_type"],
    ],
  },
  {
    name: "write handle of a session",
    make: () => new HandleIndex(keys, grant).output,
    open: (token) => openSession(keys, grant, token, "write", NOW),
    forgeries: [
      ["of another secret", new HandleIndex(foreignKeys, grant).output, "malformed"],
      ["of another grant", new HandleIndex(keys, otherGrant).output, "scope_mismatch"],
      ["that is a read handle", new HandleIndex(keys, grant).session(input.session_id), "scope_mismatch"],
      [
        "that is a read handle of the output session",
        new HandleIndex(keys, grant).session(grant.output_session_id),
        "scope_mismatch",
      ],
    ],
  },
  {
    name: "object handle",
    make: () => objectOf(keys),
    open: (token) => openObject(keys, grant, session(), token, NOW),
    forgeries: [
      ["of another secret", objectOf(foreignKeys), "malformed"],
      [
        "of another grant",
        new HandleIndex(keys, otherGrant).object(otherInput.session_id, otherInput.id, otherInput.name),
        "scope_mismatch",
      ],
      [
        "of a file that the grant does not name",
        new HandleIndex(keys, grant).object(input.session_id, newId(), input.name),
        "scope_mismatch",
      ],
      [
        "of another session",
        new HandleIndex(keys, grant).object(newId(), input.id, input.name),
        "scope_mismatch",
      ],
      ["that is a callback token", callback, "wrong_type"],
    ],
  },
  {
    name: "callback token",
    make: () => callbackOf(keys),
    open: (token) => openCallback(keys, token, NOW),
    forgeries: [
      ["of another secret", callbackOf(foreignKeys), "malformed"],
      ["that has ended", callbackOf(keys, { iat: NOW - 100, exp: NOW - 31 }), "expired"],
      ["of tomorrow", callbackOf(keys, { iat: NOW + 31, exp: NOW + 300 }), "malformed"],
      ["that is a grant", sealGrant(keys, grant), "wrong_type"],
    ],
  },
  {
    name: "manifest",
    make: manifest,
    open: (token) => openManifest(verifying, token, NOW),
    forgeries: [
      ["of another key", manifest(foreign.signing), "bad_signature"],
      [
        "of another key under the right name",
        manifest({ ...foreign.signing, kid: own.signing.kid }),
        "bad_signature",
      ],
      ["of no algorithm", `${json({ ...HEADER, alg: "none" })}.${payload}.`, "malformed"],
      ["of no algorithm, with a signature", jws({ ...HEADER, alg: "none" }, stated), "bad_signature"],
      ["of HS256", jws({ ...HEADER, alg: "HS256" }, stated), "bad_signature"],
      ["of Ed25519 in other letters", jws({ ...HEADER, alg: "eddsa" }, stated), "bad_signature"],
      [
        "with a key of its own",
        jws({ ...HEADER, kid: "x", jwk: {} }, stated, foreign.signing.key),
        "bad_signature",
      ],
      ["that is an access token", jws({ ...HEADER, typ: "JWT" }, stated), "malformed"],
      ["that is of no type", jws({ alg: "EdDSA", kid: own.signing.kid }, stated), "malformed"],
      ["with a critical extension", jws({ ...HEADER, crit: ["x"] }, stated), "malformed"],
      ["that has ended", jws(HEADER, { ...stated, exp: NOW - 31 }), "expired"],
      ["of tomorrow", jws(HEADER, { ...stated, nbf: NOW + 31 }), "not_yet_valid"],
      ["of a version to come", jws(HEADER, { ...stated, v: 2 }), "unsupported_version"],
      ["without claims", jws(HEADER, { v: 1 }), "malformed"],
    ],
  },
];
