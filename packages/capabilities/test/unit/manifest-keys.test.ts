import { generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BadKey, parseSigningKey, parseVerifyingKeys } from "../../src/index.ts";

const pair = () => generateKeyPairSync("ed25519");
const [one, two] = [pair(), pair()];
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pem = (key: KeyObject) =>
  key.export({ format: "pem", type: key.type === "private" ? "pkcs8" : "spki" }).toString();
const der = (key: KeyObject) =>
  key.export({ format: "der", type: key.type === "private" ? "pkcs8" : "spki" }).toString("base64");
const escaped = (text: string) => text.replaceAll("\n", "\\n");
const jwks = (...keys: object[]) => JSON.stringify({ keys });
const jwk = (key: KeyObject) => key.export({ format: "jwk" }) as Record<string, unknown>;

/** Which of the two signers the parsed keys believe. */
function believed(text: string): string {
  const keys = parseVerifyingKeys(text);
  const data = Buffer.from("data");
  return keys
    .map(({ key }) =>
      [one, two].findIndex((signer) => verify(null, data, key, sign(null, data, signer.privateKey))),
    )
    .join();
}

describe("a signing key", () => {
  it.each([
    ["PEM", pem(one.privateKey)],
    ["PEM with written line breaks", escaped(pem(one.privateKey))],
    ["base64 DER", der(one.privateKey)],
  ])("may be %s", (_form, text) => {
    const { kid, key } = parseSigningKey(text);
    expect(verify(null, Buffer.from("x"), one.publicKey, sign(null, Buffer.from("x"), key))).toBe(true);
    expect(parseVerifyingKeys(pem(one.publicKey))[0]?.kids).toEqual([kid]);
  });

  it.each([
    ["a public key", pem(one.publicKey)],
    ["an RSA key", pem(rsa.privateKey)],
    ["an RSA key as DER", der(rsa.privateKey)],
    ["no key", "x".repeat(64)],
    ["no base64", "!".repeat(64)],
    ["nothing", ""],
  ])("must not be %s; the message holds nothing of it", (_what, text) => {
    expect(() => parseSigningKey(text)).toThrow(
      new BadKey("must be an Ed25519 private key: PEM or base64 DER (PKCS8)"),
    );
  });
});

describe("verifying keys", () => {
  const [pemOne, pemTwo, derOne, derTwo] = [
    pem(one.publicKey),
    pem(two.publicKey),
    der(one.publicKey),
    der(two.publicKey),
  ];
  it.each([
    ["PEM", pemOne, "0"],
    ["PEM with written line breaks", escaped(pemOne), "0"],
    ["base64 DER", derOne, "0"],
    ["a comma list of DER", `${derOne},${derTwo}`, "0,1"],
    ["a comma list of PEM", `${pemTwo},\n${pemOne}`, "1,0"],
    ["a mixed comma list", `${derTwo} , ${escaped(pemOne)}`, "1,0"],
    ["a JWKS", jwks({ ...jwk(one.publicKey), kid: "a", use: "sig" }, jwk(two.publicKey)), "0,1"],
  ])("may be %s", (_form, text, signers) => {
    expect(believed(text)).toBe(signers);
  });

  it("are known by thumbprint, and in a JWKS by their name too", () => {
    const [named] = parseVerifyingKeys(jwks({ ...jwk(one.publicKey), kid: "a" }));
    expect(named?.kids).toEqual([parseSigningKey(der(one.privateKey)).kid, "a"]);
  });

  it.each([
    ["a private key as PEM", pem(one.privateKey)],
    ["a private key as DER", der(one.privateKey)],
    ["a private key among public ones", `${derTwo},${der(one.privateKey)}`],
    ["a private key behind a public one in one PEM", `${pemOne}${pem(one.privateKey)}`],
    ["a private key in a JWKS", jwks(jwk(one.privateKey))],
    ["an RSA key", pem(rsa.publicKey)],
    ["an RSA key in a JWKS", jwks(jwk(one.publicKey), jwk(rsa.publicKey))],
    ["an empty item", `${derOne},`],
    ["an empty JWKS", jwks()],
    ["no JWKS", "{}"],
    ["nothing", ""],
    ["no key", "c2VjcmV0"],
  ])("must not be %s; the message holds nothing of it", (_what, text) => {
    expect(() => parseVerifyingKeys(text)).toThrow(/^must hold Ed25519 public keys and nothing private: /);
  });
});
