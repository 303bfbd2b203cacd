import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeyRing } from "@svc/api/auth/key-ring";
import { type Config, ConfigError, createLog, loadConfig } from "@svc/service-kit";
import { parseKeyText } from "@svc/service-kit/credentials/key-text";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { newSigner } from "@svc/test-kit/credentials/signer";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const [one, two, rsa] = [newSigner(), newSigner(), newSigner("rsa")];
const jwkOf = ({ publicKey }: { publicKey: typeof one.publicKey }) => publicKey.export({ format: "jwk" });
const derOf = ({ publicKey }: { publicKey: typeof one.publicKey }) =>
  publicKey.export({ type: "spki", format: "der" });

let directory: string;
const rings: KeyRing[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-test-keys-"));
});
afterEach(async () => {
  for (const ring of rings.splice(0)) ring.close();
  await rm(directory, { recursive: true });
});

const configOf = (env: Record<string, string>): Config =>
  loadConfig("api", { SVC_INTERNAL_SERVICE_TOKEN: newSecret(), LOG_LEVEL: "fatal", ...env });

async function open(env: Record<string, string>): Promise<KeyRing> {
  const config = configOf(env);
  const ring = await KeyRing.open(config, createLog("api", config));
  rings.push(ring);
  return ring;
}

async function problemsOf(env: Record<string, string>): Promise<readonly string[]> {
  const outcome = await open(env).catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(ConfigError);
  return (outcome as ConfigError).problems;
}

const put = (name: string, text: string) => writeFile(join(directory, name), text);

describe("a key text", () => {
  const der = derOf(one).toString("base64");
  it.each([
    ["PEM", one.pem],
    ["PEM with escaped line ends", one.pem.replaceAll("\n", "\\n")],
    ["base64 DER", der],
    [
      "base64url DER in lines",
      der
        .replaceAll("+", "-")
        .replaceAll("/", "_")
        .replace(/(.{20})/g, "$1\n"),
    ],
    ["base64 PEM", Buffer.from(one.pem).toString("base64")],
    ["JWK", JSON.stringify(jwkOf(one))],
    ["JWK with its marks", JSON.stringify({ ...jwkOf(one), use: "sig", alg: "EdDSA", key_ops: ["verify"] })],
  ])("may be %s", (_form, text) => {
    const { algorithm, key } = parseKeyText(text);
    expect(algorithm).toBe("EdDSA");
    expect(key.equals(one.publicKey)).toBe(true);
    expect(key.type).toBe("public");
  });

  it("of RSA stands for RS256", () => {
    expect(parseKeyText(rsa.pem).algorithm).toBe("RS256");
    expect(parseKeyText(JSON.stringify(jwkOf(rsa))).algorithm).toBe("RS256");
  });

  const privatePem = one.privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  const privateDer = createPrivateKey(privatePem).export({ type: "pkcs8", format: "der" });
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey;
  const weak = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey;
  it.each([
    ["a private PEM", privatePem],
    ["a private DER", privateDer.toString("base64")],
    ["a private PEM in base64", Buffer.from(privatePem).toString("base64")],
    ["a private JWK", JSON.stringify(one.privateKey.export({ format: "jwk" }))],
    ["a secret", JSON.stringify({ kty: "oct", k: "c2VjcmV0" })],
    ["an elliptic curve", ec.export({ type: "spki", format: "pem" }) as string],
    ["X25519", generateKeyPairSync("x25519").publicKey.export({ type: "spki", format: "pem" }) as string],
    ["a weak RSA key", weak.export({ type: "spki", format: "pem" }) as string],
    ["a key for encryption", JSON.stringify({ ...jwkOf(one), use: "enc" })],
    ["a key for another algorithm", JSON.stringify({ ...jwkOf(rsa), alg: "RS512" })],
    ["a key that may only sign", JSON.stringify({ ...jwkOf(one), key_ops: ["sign"] })],
    ["two keys", one.pem + two.pem],
    ["nothing", ""],
    ["text", "not a key!"],
    ["base64 of nothing", "AAAA"],
    ["half a JWK", '{"kty":"OKP"'],
    ["an empty JWK", "{}"],
  ])("may not be %s", (_form, text) => {
    expect(() => parseKeyText(text)).toThrow(/^(is|cannot)/);
  });

  it("that is private is not in the message", async () => {
    const [problem = ""] = await problemsOf({ SVC_JWT_PUBLIC_KEY: privatePem, SVC_JWT_KID: "k" });
    expect(problem).toMatch(/^SVC_JWT_PUBLIC_KEY is a private key/);
    expect(problem).not.toContain(privatePem.split("\n")[1]);
  });
});

describe("the keys in force", () => {
  it("come from all sources; the later one wins", async () => {
    const jwks = JSON.stringify({
      keys: [{ ...jwkOf(two), kid: "a" }, { ...jwkOf(two), kid: "b" }, jwkOf(rsa), { kid: "" }],
    });
    await put("b.pem", one.pem);
    await put("c.d.jwk", JSON.stringify({ ...jwkOf(one), kid: "ignored" }));
    await put("plain", one.pem);
    await put(".hidden", "no key");
    await mkdir(join(directory, "sub"));
    const ring = await open({
      SVC_JWT_PUBLIC_KEY: one.pem,
      SVC_JWT_KID: "a",
      SVC_JWT_JWKS_JSON: jwks,
      SVC_JWT_PUBLIC_KEYS_DIR: directory,
    });
    const expected = { a: two, b: one, "c.d": one, plain: one };
    expect(ring.size).toBe(4);
    for (const [kid, { publicKey }] of Object.entries(expected)) {
      expect(ring.get(kid)?.key.equals(publicKey)).toBe(true);
    }
  });

  it.each([{ SVC_JWT_KID: "k" }, { SVC_JWT_KEY_ID: "k" }, { SVC_JWT_KID: "k", SVC_JWT_KEY_ID: "k" }])(
    "take the id of the single key from %j",
    async (env) => {
      expect((await open({ SVC_JWT_PUBLIC_KEY: one.pem, ...env })).get("k")).toBeDefined();
    },
  );

  it("take it from the JWK when nothing else says it", async () => {
    const jwk = JSON.stringify({ ...jwkOf(one), kid: "inside" });
    expect((await open({ SVC_JWT_PUBLIC_KEY: jwk })).get("inside")).toBeDefined();
  });

  it("have RSA keys only when RS256 is listed", async () => {
    const env = { SVC_JWT_PUBLIC_KEY: rsa.pem, SVC_JWT_KID: "r" };
    expect(await problemsOf(env)).toEqual([expect.stringMatching(/^no key that verifies.*\(EdDSA\)/)]);
    expect((await open({ ...env, SVC_JWT_ALLOWED_ALGS: "EdDSA,RS256" })).get("r")).toBeDefined();
    const edwards = { SVC_JWT_PUBLIC_KEY: one.pem, SVC_JWT_KID: "e", SVC_JWT_ALLOWED_ALGS: "RS256" };
    expect(await problemsOf(edwards)).toHaveLength(1);
  });

  it.each(["HS256", "none", "EdDSA,HS256", "eddsa", "ES256"])("know no algorithm %s", (algorithms) => {
    expect(() => configOf({ SVC_JWT_ALLOWED_ALGS: algorithms })).toThrow("comma list of EdDSA, RS256");
  });

  it.each([
    [{}, /^no key that verifies/],
    [{ SVC_JWT_PUBLIC_KEY: one.pem }, /^SVC_JWT_PUBLIC_KEY needs its key id/],
    [{ SVC_JWT_PUBLIC_KEY: one.pem, SVC_JWT_KID: "a", SVC_JWT_KEY_ID: "b" }, /name different key ids/],
    [{ SVC_JWT_JWKS_JSON: "[]" }, /^SVC_JWT_JWKS_JSON is not of the form/],
    [{ SVC_JWT_JWKS_JSON: '{"keys":[null]}' }, /^SVC_JWT_JWKS_JSON is not of the form/],
    [{ SVC_JWT_JWKS_JSON: '{"keys":[]}' }, /^no key that verifies/],
    [
      { SVC_JWT_JWKS_JSON: '{"keys":[{"kid":"a","kty":"oct","k":"YQ"}]}' },
      /^SVC_JWT_JWKS_JSON keys\[0\] cannot/,
    ],
    [{ SVC_JWT_PUBLIC_KEYS_DIR: "/nonexistent/keys" }, /does not exist/],
    [
      { SVC_JWT_PUBLIC_KEYS_DIR: "/proc/self/status" },
      /^SVC_JWT_PUBLIC_KEYS_DIR \/proc\/self\/status is not a folder$/,
    ],
  ])("%j stops the start", async (env, problem) => {
    expect(await problemsOf(env)).toEqual([expect.stringMatching(problem)]);
  });

  it("stop the start for a file that is not a key, and name it", async () => {
    await put("good.pem", one.pem);
    await put("README.md", "about these keys");
    await put("long.pem", one.pem + " ".repeat(70_000));
    const problems = await problemsOf({ SVC_JWT_PUBLIC_KEYS_DIR: directory });
    expect(problems).toHaveLength(2);
    expect(problems[0]).toMatch(/README\.md cannot be read as a public key/);
  });
});

describe("a change of the directory", () => {
  const fingerprint = (ring: KeyRing, kid: string) => ring.get(kid)?.key.equals(one.publicKey);

  it("comes into force: added, replaced, broken, removed, all gone", async () => {
    await put("a.pem", one.pem);
    const ring = await open({ SVC_JWT_PUBLIC_KEYS_DIR: directory });
    await put("b.pem", one.pem);
    expect(ring.get("b")).toBeUndefined();
    await ring.reload();
    expect(ring.size).toBe(2);
    await put("a.pem", two.pem);
    await ring.reload();
    expect([fingerprint(ring, "a"), fingerprint(ring, "b")]).toEqual([false, true]);
    await put("a.pem", "broken");
    await ring.reload();
    expect([ring.get("a"), fingerprint(ring, "b")]).toEqual([undefined, true]);
    await rm(directory, { recursive: true });
    await ring.reload();
    expect(ring.size).toBe(0);
    await mkdir(directory);
    await put("c.pem", one.pem);
    await ring.reload();
    expect(fingerprint(ring, "c")).toBe(true);
  });

  it("that cannot be read leaves the last keys, and the variables' keys", async () => {
    await put("a.pem", one.pem);
    const env = { SVC_JWT_PUBLIC_KEY: two.pem, SVC_JWT_KID: "v", SVC_JWT_PUBLIC_KEYS_DIR: directory };
    const ring = await open(env);
    await rm(directory, { recursive: true });
    await writeFile(directory, "a file now");
    await ring.reload();
    expect([ring.get("a"), ring.get("v")].every((key) => key !== undefined)).toBe(true);
  });

  it("that has a file which cannot be read takes that one for removed, and what else changed counts", async () => {
    await put("one.pem", one.pem);
    await put("two.pem", two.pem);
    const ring = await open({ SVC_JWT_PUBLIC_KEYS_DIR: directory });
    await rm(join(directory, "one.pem"));
    // For root no mode closes a file.
    await symlink("closed.pem", join(directory, "closed.pem"));
    await put("three.pem", one.pem);
    await ring.reload();
    expect([ring.get("one"), ring.get("closed")]).toEqual([undefined, undefined]);
    expect([ring.get("two"), ring.get("three")]).not.toContain(undefined);
  });

  it("that brings a key of an algorithm that is not allowed is told once, and again when the key comes again", async () => {
    await put("a.pem", one.pem);
    const config = configOf({ SVC_JWT_PUBLIC_KEYS_DIR: directory });
    const log = createLog("api", config);
    const told: unknown[] = [];
    log.warn = (fields: unknown) => void told.push(fields);
    const ring = await KeyRing.open(config, log);
    rings.push(ring);
    await put("r.pem", rsa.pem);
    for (let time = 0; time < 3; time++) await ring.reload();
    expect(told).toEqual([{ kid: "r", algorithm: "RS256" }]);
    await rm(join(directory, "r.pem"));
    await ring.reload();
    await put("r.pem", rsa.pem);
    await ring.reload();
    expect(told).toHaveLength(2);
  });

  it("comes into force by itself, within the configured time", async () => {
    await put("a.pem", one.pem);
    const ring = await open({ SVC_JWT_PUBLIC_KEYS_DIR: directory, SVC_JWT_KEY_CACHE_TTL_SECONDS: "1" });
    await put("b.pem", one.pem);
    await rm(join(directory, "a.pem"));
    await expect.poll(() => [ring.get("a"), fingerprint(ring, "b")]).toEqual([undefined, true]);
  });
});
