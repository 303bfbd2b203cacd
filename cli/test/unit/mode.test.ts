import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { countKeys, describeMode, modeOf, usableKeys } from "../../src/mode.ts";

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
  ])("with %j and %j are: %s", (settings, counts, words) => {
    expect(describeMode(modeOf(settings), counts)).toBe(words);
  });

  it("count the keys of variables and files, one for each key id", () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-keys-"));
    try {
      for (const name of ["a.pem", "b.jwk", ".hidden"]) writeFileSync(join(folder, name), "x");
      mkdirSync(join(folder, "c"));
      const settings = {
        SVC_JWT_PUBLIC_KEYS_DIR: folder,
        SVC_JWT_PUBLIC_KEY: "x",
        SVC_JWT_JWKS_JSON: '{"keys":[{},{}]}',
        SVC_API_KEYS_FILE: join(folder, "missing"),
      };
      expect(countKeys(modeOf(settings))).toEqual({ jwt: 5, apiKeys: 0 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("count no API key that is revoked, expired or not readable", () => {
    const lines = [
      { id: "1" },
      { id: "2", revoked_at: "2026-01-01T00:00:00Z" },
      { id: "3", expires_at: "2026-01-01T00:00:00Z" },
      { id: "4", expires_at: "2030-01-01T00:00:00Z" },
    ].map((line) => JSON.stringify(line));
    expect(usableKeys([...lines, "{", "null", ""].join("\n"), new Date("2026-06-01"))).toBe(2);
  });
});
