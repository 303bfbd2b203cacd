import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiKeyRecord, apiKeysFile, newApiKey } from "@svc/test-kit/credentials/api-keys";
import { newSigner } from "@svc/test-kit/credentials/signer";
import { describe, expect, it } from "vitest";
import { countKeys, describeMode, modeOf } from "../../src/mode.ts";

describe("the mode", () => {
  it.each([{}, { LOCAL_MODE: "" }, { LOCAL_MODE: "true" }, { SVC_JWT_KID: "k" }, { SVC_AUTH_PROVIDER: "" }])(
    "is local with %j",
    (settings) => {
      expect(modeOf(settings)).toMatchObject({ isLocal: true, isAuthenticated: false });
    },
  );

  it.each([
    { LOCAL_MODE: "false" },
    { LOCAL_MODE: "false", SVC_JWT_PUBLIC_KEY: "x" },
    { SVC_AUTH_PROVIDER: "librechat-jwt" },
    { SVC_AUTH_PROVIDER: " LibreChat-JWT " },
    { SVC_JWT_PUBLIC_KEY: "x" },
    { SVC_JWT_JWKS_JSON: "{}" },
    { SVC_JWT_PUBLIC_KEYS_DIR: "/keys" },
    { SVC_API_KEYS_FILE: "/api-keys" },
  ])("demands credentials with %j", (settings) => {
    expect(modeOf(settings)).toMatchObject({ isLocal: false, isAuthenticated: true });
  });

  it.each(["TRUE", "1", "yes", "no", "flase"])("is not opened by LOCAL_MODE=%s", (LOCAL_MODE) => {
    expect(modeOf({ LOCAL_MODE })).toMatchObject({ isLocal: false, isAuthenticated: true });
  });

  it("is without authentication where the provider is none, local or not", () => {
    expect(modeOf({ SVC_AUTH_PROVIDER: "none" })).toMatchObject({ isLocal: true, isAuthenticated: false });
    const notLocal = { LOCAL_MODE: "false", SVC_AUTH_PROVIDER: "none" };
    expect(modeOf(notLocal)).toMatchObject({ isLocal: false, isAuthenticated: false });
  });
});

describe("the words for a mode", () => {
  const keys = { jwt: 0, apiKeys: 0 };
  it.each([
    [{}, keys, "no authentication, this machine only"],
    [{ SERVICE_HOST: "0.0.0.0" }, keys, "no authentication, open to everybody who reaches 0.0.0.0"],
    [{ LOCAL_MODE: "false" }, { jwt: 1, apiKeys: 2 }, "authentication: 1 JWT key, 2 API keys"],
    [{ LOCAL_MODE: "false", SERVICE_HOST: "0.0.0.0" }, { jwt: 0, apiKeys: 1 }, "authentication: 1 API key"],
    [{ LOCAL_MODE: "false" }, keys, "authentication: no keys"],
    [{ SVC_PERSIST_SESSIONS: "true" }, keys, "no authentication, this machine only; sessions are kept"],
  ])("with %j and %j are: %s", (settings, counts, words) => {
    expect(describeMode(modeOf(settings), counts)).toBe(words);
  });

  it("count the keys that the API accepts, one for each key id", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-keys-"));
    const signer = newSigner();
    try {
      for (const name of ["a.pem", "b.pem", ".hidden"]) writeFileSync(join(folder, name), signer.pem);
      writeFileSync(join(folder, "README"), "no key");
      writeFileSync(join(folder, "rsa.pem"), newSigner("rsa").pem);
      mkdirSync(join(folder, "c"));
      const jwk = { ...signer.publicKey.export({ format: "jwk" }), kid: "j" };
      const settings = {
        SVC_JWT_PUBLIC_KEYS_DIR: folder,
        SVC_JWT_PUBLIC_KEY: signer.pem,
        SVC_JWT_KID: "v",
        SVC_JWT_JWKS_JSON: JSON.stringify({ keys: [jwk, {}] }),
        SVC_API_KEYS_FILE: join(folder, "missing"),
      };
      expect(await countKeys(modeOf(settings))).toEqual({ jwt: 4, apiKeys: 0 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("count no API key that is revoked or expired, and none of a file that the API refuses", async () => {
    const file = apiKeysFile();
    const count = async () => (await countKeys(modeOf({ SVC_API_KEYS_FILE: file.path }))).apiKeys;
    try {
      const past = "2026-01-01T00:00:00Z";
      file.put([
        apiKeyRecord(newApiKey()),
        apiKeyRecord(newApiKey(), { revoked_at: past }),
        apiKeyRecord(newApiKey(), { expires_at: past }),
        apiKeyRecord(newApiKey(), { expires_at: "2099-01-01T00:00:00Z" }),
      ]);
      expect(await count()).toBe(2);
      chmodSync(file.path, 0o644);
      expect(await count()).toBe(0);
    } finally {
      file.remove();
    }
  });
});
