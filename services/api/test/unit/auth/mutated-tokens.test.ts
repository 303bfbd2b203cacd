/** No access token that is not exactly one that was signed names a principal: 15,000 changed ones, and all other kinds. */
import { generateKeyPairSync, sign } from "node:crypto";
import { bearerToken } from "@svc/api/auth/bearer";
import { TokenRefused } from "@svc/api/auth/refused";
import { VerifiedTokens } from "@svc/api/auth/verified-tokens";
import { verifyToken } from "@svc/api/auth/verifier";
import type { VerificationKey } from "@svc/service-kit/credentials/key-text";
import { generator, mutate, newSeed } from "@svc/test-kit/credentials/mutations";
import {
  inputOf,
  KID,
  mintHmac,
  newSigner,
  part,
  rightClaims,
  seconds,
} from "@svc/test-kit/credentials/signer";
import { TOKEN_KINDS } from "@svc/test-kit/credentials/token-kinds";
import { describe, expect, it } from "vitest";

const MUTANTS = 15_000;
const ORIGINALS = 6;
const signer = newSigner();
const other = newSigner();
const rsa = newSigner("rsa");
const keys = new Map<string, VerificationKey>([
  [KID, { algorithm: "EdDSA", key: signer.publicKey }],
  ["rsa", { algorithm: "RS256", key: rsa.publicKey }],
]);
/** For all tokens, as in a process: none passes for another that was verified. */
const verified = new VerifiedTokens();
const rules = {
  issuer: "librechat",
  audiences: ["codeapi"],
  skewSeconds: 30,
  maxTtlSeconds: 300,
  fallbackTenant: "legacy",
};

/** True when a token that arrives in a header is refused; false when it names somebody. Anything else that is thrown is a crash. */
async function isRefused(token: string): Promise<boolean> {
  try {
    await verifyToken(bearerToken([`Bearer ${token}`]), { keys, rules, verified, now: seconds });
    return false;
  } catch (error) {
    if (error instanceof TokenRefused && error.message !== "") return true;
    throw error;
  }
}

/** The verifier itself, without the check of the header before it. */
async function isRefusedBare(token: string): Promise<boolean> {
  const outcome = await verifyToken(token, { keys, rules, verified, now: seconds }).catch(
    (error: unknown) => error,
  );
  if (outcome instanceof Error && !(outcome instanceof TokenRefused)) throw outcome;
  return outcome instanceof TokenRefused;
}

describe("an access token", () => {
  it(`is refused after each of ${MUTANTS} changes`, async () => {
    const seed = newSeed();
    const random = generator(seed);
    const originals = Array.from({ length: ORIGINALS }, (_, at) =>
      signer.mint({ claims: { sub: `u${at}` } }),
    );
    for (const original of originals) expect(await isRefused(original)).toBe(false);
    const accepted: string[] = [];
    for (let at = 0; at < MUTANTS; at++) {
      const mutant = mutate(originals[at % ORIGINALS] as string, originals, random);
      const check = at % 2 === 0 ? isRefused : isRefusedBare;
      // Blanks around a header's value are no part of it.
      if (!(await check(mutant)) && mutant.trim() !== originals[at % ORIGINALS]) accepted.push(mutant);
    }
    expect(accepted, `seed ${seed}`).toEqual([]);
  });

  it.each(TOKEN_KINDS.map(({ name, make }) => [name, make()]))("is not a %s", async (_name, token) => {
    expect(await isRefused(token)).toBe(true);
  });

  it("is not a manifest that the token signer's own key signed", async () => {
    const input = inputOf({ alg: "EdDSA", typ: "svc-manifest+jwt", kid: KID }, rightClaims());
    const token = `${input}.${sign(null, Buffer.from(input), signer.privateKey).toString("base64url")}`;
    expect(await isRefused(token)).toBe(true);
  });

  const publicBytes = [
    signer.pem,
    signer.publicKey.export({ type: "spki", format: "der" }),
    Buffer.from(signer.publicKey.export({ format: "jwk" }).x ?? "", "base64url"),
  ];
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const input = (header: object) => inputOf({ typ: "JWT", kid: KID, ...header }, rightClaims());
  const signed = (header: object, key = signer.privateKey, digest: string | null = null) =>
    `${input(header)}.${sign(digest, Buffer.from(input(header)), key).toString("base64url")}`;
  const forgeries: [what: string, token: string][] = [
    ...publicBytes.map(
      (bytes, at) => [`HMAC with the public key, form ${at}`, mintHmac(bytes)] as [string, string],
    ),
    ["no algorithm, no signature", `${input({ alg: "none" })}.`],
    ["no algorithm, with a signature", signed({ alg: "none" })],
    ["no algorithm in other letters", signed({ alg: "nOnE" })],
    ["no algorithm at all", signed({})],
    ["a list of algorithms", signed({ alg: ["EdDSA"] })],
    ["EdDSA in other letters", signed({ alg: "eddsa" })],
    ["an elliptic curve", signed({ alg: "ES256" }, ec, "sha256")],
    ["RSA under the name of an Ed25519 key", signed({ alg: "RS256" }, rsa.privateKey, "sha256")],
    ["Ed25519 under the name of an RSA key", signed({ alg: "EdDSA", kid: "rsa" })],
    ["another key", other.mint()],
    [
      "a key that comes along",
      signed({ alg: "EdDSA", kid: "new", jwk: other.publicKey.export({ format: "jwk" }) }, other.privateKey),
    ],
    [
      "a key at an address",
      signed({ alg: "EdDSA", kid: "new", jku: "http://127.0.0.1/keys" }, other.privateKey),
    ],
    ["a critical extension", signed({ alg: "EdDSA", crit: ["exp"] })],
    ["a detached payload", signed({ alg: "EdDSA", b64: false, crit: ["b64"] })],
    ["a signature over other claims", `${input({ alg: "EdDSA" })}.${signer.mint().split(".")[2]}`],
    [
      "claims that are not an object",
      `${part({ alg: "EdDSA", typ: "JWT", kid: KID })}.${part([])}.${part("")}`,
    ],
  ];
  it.each(forgeries)("with %s is refused", async (_what, token) => {
    expect(await isRefused(token)).toBe(true);
    expect(await isRefusedBare(token)).toBe(true);
  });
});
