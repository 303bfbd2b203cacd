import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadSecrets, SECRET_NAMES, type Secrets } from "../../src/secrets.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-secrets-"));
  path = join(folder, "secrets.env");
});
afterEach(() => rmSync(folder, { recursive: true }));

function keysFit(secrets: Secrets): boolean {
  const privateKey = createPrivateKey({
    key: Buffer.from(secrets.SVC_EXECUTION_MANIFEST_PRIVATE_KEY, "base64"),
    format: "der",
    type: "pkcs8",
  });
  const publicKey = createPublicKey({
    key: Buffer.from(secrets.SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY, "base64"),
    format: "der",
    type: "spki",
  });
  const text = Buffer.from("text");
  return verify(null, text, publicKey, sign(null, text, privateKey));
}

describe("loadSecrets", () => {
  it("makes all secrets once and reads the same ones back", () => {
    const first = loadSecrets(folder);
    expect(Object.keys(first).sort()).toEqual([...SECRET_NAMES].sort());
    expect(loadSecrets(folder)).toEqual(first);
  });

  it("keeps them from others", () => {
    loadSecrets(folder);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    chmodSync(path, 0o640);
    expect(() => loadSecrets(folder)).toThrow(/can be read by others/);
  });

  it("makes secrets of 32 random bytes, different in every copy, and a fitting pair of keys", () => {
    const secrets = loadSecrets(folder);
    const random = SECRET_NAMES.filter((name) => name.startsWith("SVC_") && !name.endsWith("_KEY"));
    for (const name of random) expect(secrets[name]).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(random.map((name) => secrets[name])).size).toBe(9);
    expect(keysFit(secrets)).toBe(true);
  });

  it("adds what is missing and keeps the rest; a lost half of the key pair renews both", () => {
    const first = loadSecrets(folder);
    const lines = readFileSync(path, "utf8").split("\n");
    const without = (name: string) => lines.filter((line) => !line.startsWith(`${name}=`)).join("\n");
    writeFileSync(path, without("SVC_EGRESS_GRANT_SECRET"));
    const second = loadSecrets(folder);
    expect(second).toEqual({ ...first, SVC_EGRESS_GRANT_SECRET: second.SVC_EGRESS_GRANT_SECRET });
    writeFileSync(path, without("SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY"));
    const third = loadSecrets(folder);
    expect(keysFit(third)).toBe(true);
    expect(third.SVC_EXECUTION_MANIFEST_PRIVATE_KEY).not.toBe(first.SVC_EXECUTION_MANIFEST_PRIVATE_KEY);
    expect(third.SVC_INTERNAL_SERVICE_TOKEN).toBe(first.SVC_INTERNAL_SERVICE_TOKEN);
  });
});
