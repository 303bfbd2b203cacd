/** Credentials as ./svc makes and stores them. */
import { createPublicKey, verify } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type ApiKeyRecord, apiKeyDigest, isApiKey, parseApiKeys } from "@svc/contracts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { accessToken } from "../../src/credentials/access-token.ts";
import { adviceFor, type Situation } from "../../src/credentials/advice.ts";
import { changeApiKeys, readApiKeys } from "../../src/credentials/api-keys-file.ts";
import { keyPairOf, publishedKeyPair } from "../../src/credentials/key-pair.ts";
import { lendApiKeys } from "../../src/credentials/lend.ts";
import { signedSettings } from "../../src/credentials/librechat-settings.ts";
import { lifeOf, newApiKey } from "../../src/credentials/new-api-key.ts";
import { apiKeysPath } from "../../src/credentials/place.ts";
import { tableOf } from "../../src/credentials/table.ts";
import { resolveInstance } from "../../src/instance.ts";
import { Problem } from "../../src/problem.ts";

let dataDir: string;
let path: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "svc-test-credentials-"));
  path = join(dataDir, "api-keys.jsonl");
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const make = (name: string, more: object = {}) =>
  newApiKey({ name, tenant: "t1", user: "u1", ...more }, new Date("2026-11-25T00:00:00Z"));
const add = (name: string) => changeApiKeys(path, (records) => [...records, make(name).record]);

describe("a new API key", () => {
  it("has the right form, and its record has the digest alone", () => {
    const { key, record } = make("laptop", { plan: "pro", expires: "90d" });
    expect(isApiKey(key)).toBe(true);
    expect(record).toMatchObject({
      name: "laptop",
      sha256: apiKeyDigest(key),
      plan: "pro",
      expires_at: "2027-02-23T00:00:00.000Z",
    });
    expect(JSON.stringify(record)).not.toContain(key.slice(4));
    expect(make("laptop").key).not.toBe(key);
  });

  it.each(["", "0d", "90", "-1d", "1y", "1.5d", "1d ", "3661d", "99999999d"])(
    "cannot live for %j",
    (text) => {
      expect(() => lifeOf(text)).toThrow(Problem);
    },
  );

  it.each([
    ["NAME", { name: "" }],
    ["NAME", { name: "a\nb" }],
    ["--tenant", { tenant: "" }],
    ["--user", { user: "u".repeat(257) }],
    ["--plan", { plan: "" }],
  ])("with a wrong %s is refused", (what, change) => {
    expect(() => make("n", change)).toThrow(`${what} must have`);
  });
});

describe("the file of API keys", () => {
  it("is made for its owner alone, and concurrent commands lose nothing", async () => {
    const names = Array.from({ length: 30 }, (_, at) => `k${at}`);
    await Promise.all(names.map(add));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const { records, problems } = parseApiKeys(readFileSync(path, "utf8"));
    expect(problems).toEqual([]);
    expect(records.map(({ name }) => name).sort()).toEqual(names.sort());
    expect(readdirSync(dataDir)).toEqual(["api-keys.jsonl"]);
  });

  it("that is broken or open to others is not touched", async () => {
    writeFileSync(path, "{\n", { mode: 0o600 });
    await expect(add("a")).rejects.toThrow("is broken");
    expect(readFileSync(path, "utf8")).toBe("{\n");
    chmodSync(path, 0o644);
    writeFileSync(path, "");
    await expect(add("a")).rejects.toThrow("can be read by others");
    expect(readFileSync(path, "utf8")).toBe("");
  });

  it("stays as it is when the change fails", async () => {
    await add("a");
    const before = readFileSync(path, "utf8");
    const failing = changeApiKeys(path, () => {
      throw new Problem("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(readFileSync(path, "utf8")).toBe(before);
    await add("b");
    expect(await readApiKeys(path)).toHaveLength(2);
  });

  it("lies in the data folder, or where SVC_API_KEYS_FILE says by a whole path", () => {
    expect(apiKeysPath({ dataDir }, {})).toBe(path);
    expect(apiKeysPath({ dataDir }, { SVC_API_KEYS_FILE: "/etc/svc/keys" })).toBe("/etc/svc/keys");
    expect(() => apiKeysPath({ dataDir }, { SVC_API_KEYS_FILE: "keys" })).toThrow("absolute path");
  });
});

describe("the table of API keys", () => {
  it("says what each key is, and no text acts on the terminal", () => {
    const now = Date.parse("2026-11-25T12:00:00Z");
    const records: ApiKeyRecord[] = [
      make("one", { plan: "pro" }).record,
      make("two", { expires: "1h", user: "a\n\u001b[2Jb\u202ec" }).record,
      { ...make("three").record, revoked_at: "2026-11-25T00:00:00Z" },
    ];
    const lines = tableOf(records, now).split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^ID +NAME +TENANT +USER +PLAN +CREATED +EXPIRES +STATE$/);
    expect(lines[1]).toMatch(/^[0-9a-f]{12} +one +t1 +u1 +pro +2026-11-25 +never +active$/);
    expect(lines[2]).toMatch(/ +two +t1 +a\?\?\[2Jb\?c +- +2026-11-25 +2026-11-25 +expired$/);
    expect(lines[3]).toMatch(/ +three .* revoked$/);
  });
});

describe("a key pair of the copy", () => {
  it("is made once, also by concurrent commands; only its public key can be read by others", async () => {
    const pairs = await Promise.all([1, 2, 3].map(() => keyPairOf({ dataDir }, "token")));
    expect(new Set(pairs.map(({ kid }) => kid)).size).toBe(1);
    const [{ kid, publicPath, privateKey }] = pairs as [(typeof pairs)[0]];
    expect(publicPath).toBe(join(dataDir, "jwt-keys", `${kid}.pem`));
    expect(statSync(join(dataDir, "token-key.pem")).mode & 0o777).toBe(0o600);
    expect(statSync(publicPath).mode & 0o777).toBe(0o644);
    expect(statSync(join(dataDir, "jwt-keys")).mode & 0o777).toBe(0o755);
    expect(createPublicKey(readFileSync(publicPath)).equals(createPublicKey(privateKey))).toBe(true);
    const other = await keyPairOf({ dataDir }, "librechat");
    expect(other.kid).not.toBe(kid);
    rmSync(publicPath);
    expect((await keyPairOf({ dataDir }, "token")).publicPath).toBe(publicPath);
    expect(statSync(publicPath).isFile()).toBe(true);
  });

  it("that is damaged or open to others is refused with what to do", async () => {
    await keyPairOf({ dataDir }, "token");
    const file = join(dataDir, "token-key.pem");
    chmodSync(file, 0o644);
    await expect(keyPairOf({ dataDir }, "token")).rejects.toThrow("can be read by others");
    chmodSync(file, 0o600);
    writeFileSync(file, "x");
    await expect(keyPairOf({ dataDir }, "token")).rejects.toThrow("holds no private key");
  });

  it("that cannot be read is not called broken, and does not keep a copy from starting", async () => {
    // Root can read everything but this.
    mkdirSync(join(dataDir, "token-key.pem"), { mode: 0o700 });
    await expect(keyPairOf({ dataDir }, "token")).rejects.toMatchObject({ code: "EISDIR" });
    expect(publishedKeyPair({ dataDir })).toBeUndefined();
  });

  it("that is damaged or open to others does not keep a copy from starting", async () => {
    expect(publishedKeyPair({ dataDir })).toBeUndefined();
    const { kid } = await keyPairOf({ dataDir }, "token");
    expect(publishedKeyPair({ dataDir })?.kid).toBe(kid);
    const file = join(dataDir, "token-key.pem");
    chmodSync(file, 0o640);
    expect(publishedKeyPair({ dataDir })).toBeUndefined();
    chmodSync(file, 0o600);
    writeFileSync(file, "x");
    const other = await keyPairOf({ dataDir }, "librechat");
    expect(publishedKeyPair({ dataDir })?.kid).toBe(other.kid);
  });
});

describe("an access token", () => {
  it("names user, tenant, and the parties of the settings", async () => {
    const { kid, privateKey } = await keyPairOf({ dataDir }, "token");
    const env = { SVC_JWT_ISSUER: "me", SVC_JWT_AUDIENCE: "it, other" };
    const token = accessToken({ kid, privateKey, tenant: "t1", user: "u1", ttlSeconds: 60 }, env);
    const [header = "", claims = "", signature = ""] = token.split(".");
    const read = (text: string) => JSON.parse(Buffer.from(text, "base64url").toString());
    expect(read(header)).toEqual({ alg: "EdDSA", typ: "JWT", kid });
    const { iat, exp, ...said } = read(claims);
    expect(said).toMatchObject({ iss: "me", aud: "it", sub: "u1", tenant_id: "t1" });
    expect(exp - iat).toBe(60);
    const input = Buffer.from(`${header}.${claims}`);
    expect(verify(null, input, createPublicKey(privateKey), Buffer.from(signature, "base64url"))).toBe(true);
  });

  it("is signed by LibreChat with the key as its settings hold it", async () => {
    const { kid, privateKey } = await keyPairOf({ dataDir }, "librechat");
    const parties = { issuer: "librechat", audience: "codeapi" };
    const { libreChat } = signedSettings({
      baseUrl: "http://h/v1",
      kid,
      privateKey,
      ...parties,
      tenant: "t1",
      ttlSeconds: 120,
      publicKeys: "/k",
    });
    expect(libreChat).toContain("CODEAPI_JWT_TTL_SECONDS=120");
    const line = libreChat.find((text) => text.startsWith("CODEAPI_JWT_PRIVATE_KEY="));
    expect(line).not.toContain("\n");
    const [, value = ""] = /="(.*)"$/.exec(line ?? "") ?? [];
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    expect(value.replaceAll("\\n", "\n")).toBe(pem.trim());
  });
});

describe("the advice after a new credential", () => {
  const situation: Situation = {
    settingsFile: "/etc/svc.env",
    url: "http://127.0.0.1:3112",
    verdict: "refused",
    variable: "SVC_JWT_PUBLIC_KEYS_DIR",
    value: "/data/jwt-keys",
    configured: undefined,
    publicKey: "/data/jwt-keys/token-1.pem",
    reloadMs: 33_000,
  };
  const advice = (change: Partial<Situation>) => adviceFor({ ...situation, ...change });

  it.each<[string, Partial<Situation>, string]>([
    ["is accepted", { verdict: "accepted" }, "accepts it"],
    ["is refused", {}, "SVC_JWT_PUBLIC_KEYS_DIR=/data/jwt-keys"],
    ["is not asked for", { verdict: "open" }, "asks nobody for a credential"],
    ["cannot be tried", { verdict: "unreachable" }, "No API answers"],
    ["is for no running copy", { url: undefined }, "as a line of /etc/svc.env:"],
    ["is for a copy yet to start", { url: undefined, configured: "/data/jwt-keys/" }, "./svc up -d"],
    ["belongs in another folder", { configured: "/etc/keys" }, "cp /data/jwt-keys/token-1.pem /etc/keys"],
    ["needs a restart", { configured: "/data/jwt-keys" }, "./svc down"],
    [
      "needs the time in which keys are read",
      { configured: "/data/jwt-keys" },
      "A new public key counts within 33 s.",
    ],
  ])("that %s says what to do", (_what, change, text) => {
    expect(advice(change)).toContain(text);
  });
});

describe("the copy of the API keys that the API's process reads", () => {
  const instanceOf = (runDir: string) => ({ ...resolveInstance(NONE, {}), dataDir, runDir });
  const NONE = { "data-dir": undefined, "port-offset": undefined };
  const warned: string[] = [];
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
    warned.splice(0);
  });

  function lend(): string {
    const caller = { SVC_API_KEYS_FILE: path, LOG_LEVEL: "warn" };
    const lent = lendApiKeys(instanceOf(dataDir), caller, false, (problem) => warned.push(problem));
    closers.push(lent.close);
    expect(lent.caller.LOG_LEVEL).toBe("warn");
    return lent.caller.SVC_API_KEYS_FILE;
  }

  // The copy lies in the run folder; here that is another one than the folder of the file.
  beforeEach(() => {
    path = join(mkdtempSync(join(dataDir, "own-")), "keys.jsonl");
  });

  it("follows the file, and is for its reader alone", async () => {
    await add("a");
    const copy = lend();
    expect(readFileSync(copy, "utf8")).toBe(readFileSync(path, "utf8"));
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    await add("b");
    await expect.poll(() => readFileSync(copy, "utf8")).toBe(readFileSync(path, "utf8"));
    rmSync(path);
    await expect.poll(() => existsSync(copy)).toBe(false);
    await expect.poll(() => warned.join()).toContain("no API key is in use");
    await add("c");
    await expect.poll(() => existsSync(copy)).toBe(true);
  });

  it("is there again when the same file is, as on a disk that was away", async () => {
    await add("a");
    const copy = lend();
    renameSync(dirname(path), `${dirname(path)}-away`);
    await expect.poll(() => existsSync(copy)).toBe(false);
    renameSync(`${dirname(path)}-away`, dirname(path));
    await expect.poll(() => existsSync(copy)).toBe(true);
  });

  it("stays when the file is opened to others, and one warning says so", async () => {
    await add("a");
    const copy = lend();
    const before = readFileSync(copy, "utf8");
    chmodSync(path, 0o644);
    writeFileSync(path, "");
    await expect.poll(() => warned.join()).toContain("can be read by others; the last API keys stay in use");
    chmodSync(path, 0o600);
    await expect.poll(() => readFileSync(copy, "utf8")).toBe("");
    expect(before).not.toBe("");
    expect(warned).toHaveLength(1);
  });

  it("is not made of a file that is missing or open to others, and never written through a link", async () => {
    expect(lend).toThrow("does not exist");
    await add("a");
    chmodSync(path, 0o640);
    expect(lend).toThrow("can be read by others");
    chmodSync(path, 0o600);
    const victim = join(dataDir, "victim");
    writeFileSync(victim, "mine");
    for (const name of ["api-keys.jsonl", ".api-keys.jsonl.new"]) symlinkSync(victim, join(dataDir, name));
    lend();
    expect(readFileSync(victim, "utf8")).toBe("mine");
  });

  it("is none where no file is named", () => {
    const caller = { LOG_LEVEL: "warn" };
    expect(lendApiKeys(instanceOf(dataDir), caller, true, () => undefined).caller).toBe(caller);
  });
});
