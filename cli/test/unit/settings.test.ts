import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiKeyRecord, apiKeysFile, newApiKey } from "@svc/test-kit/credentials/api-keys";
import { newSigner } from "@svc/test-kit/credentials/signer";
import { afterAll, describe, expect, it } from "vitest";
import type { Language } from "../../src/capacity.ts";
import { resolveInstance } from "../../src/instance.ts";
import { settingsProblems, settingsWarnings } from "../../src/settings/check.ts";
import { effectiveSettings } from "../../src/settings/effective.ts";
import { mergeSettings, readSettings } from "../../src/settings/sources.ts";
import { sized, sizedAnyway } from "../../src/sizing.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-settings-")));
afterAll(() => rmSync(folder, { recursive: true }));
const dataDir = join(folder, "data");
const signer = newSigner();
mkdirSync(dataDir);

function file(text: string, name = "other.env"): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe("settings", () => {
  it("of the environment win over the file's, and an empty one is none", () => {
    const settings = file("MAX_REQUESTS=1\nMAX_FILE_SIZE=2\nLOG_LEVEL=debug\nPTC_MODE=");
    const env = { MAX_REQUESTS: "3", LOG_LEVEL: "", PATH: "/bin", SVC_DATA_DIR: dataDir };
    const { values, fromFile } = readSettings({ settings }, env);
    expect(values).toEqual({
      MAX_REQUESTS: "3",
      MAX_FILE_SIZE: "2",
      LOG_LEVEL: "debug",
      SVC_DATA_DIR: dataDir,
    });
    expect([...fromFile]).toEqual(["MAX_FILE_SIZE", "LOG_LEVEL"]);
  });

  it("come from the file of the option, else of the variable, else from svc.env of the data folder", () => {
    const [option, variable] = [file("MAX_REQUESTS=1", "option.env"), file("MAX_REQUESTS=2", "variable.env")];
    const own = file("MAX_REQUESTS=3", "data/svc.env");
    const env = { SVC_DATA_DIR: dataDir, SVC_SETTINGS_FILE: variable };
    expect(readSettings({ settings: option }, env)).toMatchObject({
      file: option,
      values: { MAX_REQUESTS: "1" },
    });
    expect(readSettings({}, env)).toMatchObject({ file: variable, values: { MAX_REQUESTS: "2" } });
    expect(readSettings({}, { SVC_DATA_DIR: dataDir })).toMatchObject({
      file: own,
      values: { MAX_REQUESTS: "3" },
    });
    expect(readSettings({ "data-dir": dataDir }, {})).toMatchObject({ file: own });
    expect(readSettings({ "data-dir": folder }, {})).toMatchObject({ file: undefined, values: {} });
    rmSync(own);
  });

  it("name files as seen from the settings file, and in the environment from here", () => {
    const settings = file("SVC_JWT_PUBLIC_KEYS_DIR=keys\nSTORAGE_DIR=/objects\nREDIS_TLS_CA=../ca.pem");
    const { values } = readSettings({ settings }, { SVC_API_KEYS_FILE: "keys.jsonl" });
    expect(values).toEqual({
      SVC_JWT_PUBLIC_KEYS_DIR: join(folder, "keys"),
      STORAGE_DIR: "/objects",
      REDIS_TLS_CA: join(folder, "../ca.pem"),
      SVC_API_KEYS_FILE: join(process.cwd(), "keys.jsonl"),
    });
  });

  it("take from the file only names that are ours", () => {
    const { values, foreign } = readSettings({ settings: file("PATH=/evil\nSVC_NEW=1\nMAX_REQEUSTS=2") }, {});
    expect(values).toEqual({ SVC_NEW: "1" });
    expect(foreign).toEqual([
      { name: "PATH", line: 1 },
      { name: "MAX_REQEUSTS", line: 3 },
    ]);
  });

  it.each([
    ["no such file", join(folder, "missing.env"), /missing\.env cannot be read: there is no such file/],
    ["a folder", folder, /is not a regular file/],
    ["a device", "/dev/zero", /is not a regular file/],
    ["too much", file("#".repeat(2 ** 20 + 1), "large.env"), /has more than 1048576 bytes/],
    [
      "another file in it",
      file("A=1\nSVC_SETTINGS_FILE=x", "chain.env"),
      /chain\.env:2: SVC_SETTINGS_FILE cannot be set/,
    ],
    ["a line that is none", file("A=1\nB", "line.env"), /line\.env:2: KEY=value is expected/],
  ])("are refused with %s", (_what, settings, message) => {
    expect(() => readSettings({ settings }, {})).toThrow(message);
  });

  it("are refused where they are not UTF-8", () => {
    const path = join(folder, "latin1.env");
    writeFileSync(path, Buffer.from("LOG_LEVEL=\xe4", "latin1"));
    expect(() => readSettings({ settings: path }, {})).toThrow("is not UTF-8");
  });

  it("in a data folder cannot name another data folder", () => {
    const own = file("SVC_DATA_DIR=/elsewhere", "data/svc.env");
    expect(() => readSettings({ "data-dir": dataDir }, {})).toThrow("svc.env:1: SVC_DATA_DIR names another");
    file("SVC_DATA_DIR=.", "data/svc.env");
    expect(readSettings({ "data-dir": dataDir }, {}).values).toEqual({ SVC_DATA_DIR: dataDir });
    rmSync(own);
  });
});

const GIB = 2 ** 30;
const languages: Language[] = [{ language: "python" }];
const machine = { cores: 4, memoryBytes: 64 * GIB };
const SIZES = { SANDBOX_MAX_CONCURRENT_JOBS: "8", PYTHON_CONCURRENCY: "8", OTHER_CONCURRENCY: "8" };
const WINDOWS = {
  MAX_REQUESTS: "1000",
  PTC_RESUME_MAX_REQUESTS: "30000",
  UPLOAD_MAX_REQUESTS: "1500",
  DOWNLOAD_MAX_REQUESTS: "3000",
  FETCH_MAX_REQUESTS: "6000",
};

describe("what ./svc sets where nothing is set", () => {
  it("is local mode, one process, sizes of the machine and wide windows", () => {
    const all = { LOCAL_MODE: "true", SVC_TOPOLOGY: "combined", ...SIZES, ...WINDOWS };
    expect(sized({}, machine, languages)).toEqual({ chosen: all, settings: all });
  });

  it("is separate processes and the documented windows with authentication", () => {
    const { chosen } = sized({ SVC_JWT_PUBLIC_KEYS_DIR: "/keys" }, machine, languages);
    expect(chosen).toEqual({ LOCAL_MODE: "false", SVC_TOPOLOGY: "separate", ...SIZES });
  });

  it("leaves what the operator set, and follows it", () => {
    const caller = {
      SANDBOX_MAX_CONCURRENT_JOBS: "3",
      OTHER_CONCURRENCY: "1",
      MAX_REQUESTS: "5",
      SVC_TOPOLOGY: "separate",
    };
    const { settings } = sized(caller, machine, languages);
    expect(settings).toMatchObject({ ...caller, PYTHON_CONCURRENCY: "3", UPLOAD_MAX_REQUESTS: "1500" });
  });

  it("is fewer slots where the memory is short, with a line that says so", () => {
    const { settings, notice } = sized({}, { cores: 4, memoryBytes: 4 * GIB }, languages);
    expect(settings).toMatchObject({ SANDBOX_MAX_CONCURRENT_JOBS: "2", PYTHON_CONCURRENCY: "2" });
    expect(notice).toContain("SANDBOX_MAX_CONCURRENT_JOBS is 2, not 8");
  });

  it("is the same again when it is applied to its own result", () => {
    for (const caller of [{}, { SVC_API_KEYS_FILE: "/keys" }, { SVC_AUTH_PROVIDER: "none" }]) {
      const { settings } = sized(caller, machine, languages);
      expect(sized(settings, machine, languages).settings).toEqual(settings);
    }
  });

  it("is told without a refusal to commands that start nothing", () => {
    const tooMany = { SANDBOX_MAX_CONCURRENT_JOBS: "500" };
    expect(() => sized(tooMany, machine, languages)).toThrow("500 programs at once");
    expect(sizedAnyway(tooMany, machine, languages).settings.PYTHON_CONCURRENCY).toBe("500");
  });
});

describe("the check of all settings", () => {
  const instance = resolveInstance({ "data-dir": dataDir }, {});

  it("finds nothing wrong with none", async () => expect(await settingsProblems(instance, {})).toEqual([]));

  it("tells the problems of all components at once, each once", async () => {
    const problems = await settingsProblems(instance, {
      MAX_REQUESTS: "many",
      S3_ACCESS_KEY: "a",
      SVC_PERSIST_SESSION: "true",
      SANDBOX_RUN_TIMEOUT: "999999",
      SANDBOX_WORKSPACE_MAX_BYTES: "1000gb",
      SVC_EGRESS_GRANT_SECRET: "short",
      SANDBOX_LIMIT_OVERRIDES: '{"py":{"run_timeout":5}}',
      SANDBOX_COMPILE_TIMEOUT: "30s",
    });
    expect(problems).toEqual([
      'SANDBOX_COMPILE_TIMEOUT must be a whole number of milliseconds, not "30s"',
      expect.stringMatching(/^SANDBOX_LIMIT_OVERRIDES is wrong: py is not one of \*, python, /),
      'MAX_REQUESTS must be a whole number, not "many"',
      "SVC_PERSIST_SESSION is not known; did you mean SVC_PERSIST_SESSIONS?",
      "SANDBOX_RUN_TIMEOUT must be at most MAX_RUN_TIMEOUT, by default JOB_TIMEOUT: 999999 is above 300000",
      "S3_ACCESS_KEY and S3_SECRET_KEY belong together",
      "SVC_EGRESS_GRANT_SECRET must have at least 32 bytes",
      expect.stringMatching(/^\d+ programs at once may take /),
    ]);
  });

  it.each([
    [{ LOCAL_MODE: "yes" }, /^LOCAL_MODE must be exactly true or false, not "yes"$/],
    [{ LOCAL_MODE: "false" }, /^no key that verifies access tokens \(EdDSA\): set SVC_JWT_PUBLIC_KEYS_DIR/],
    [{ SVC_JWT_PUBLIC_KEYS_DIR: "/nonexistent" }, /^SVC_JWT_PUBLIC_KEYS_DIR \/nonexistent does not exist/],
    [{ SVC_JWT_PUBLIC_KEYS_DIR: "/etc/passwd" }, /^SVC_JWT_PUBLIC_KEYS_DIR \/etc\/passwd is not a folder/],
    [{ SVC_JWT_PUBLIC_KEYS_DIR: dataDir }, /^no key .* is in SVC_JWT_PUBLIC_KEYS_DIR \//],
    [{ LOCAL_MODE: "true", SVC_API_KEYS_FILE: "/k" }, /^LOCAL_MODE=true turns .* SVC_API_KEYS_FILE/],
    [{ SERVICE_HOST: "0.0.0.0" }, /^SERVICE_HOST=0\.0\.0\.0 without authentication .*docs\/deploy\.md/],
    [{ SVC_API_KEYS_FILE: "/k" }, /^SVC_API_KEYS_FILE \/k does not exist; \.\/svc key add NAME makes it/],
  ])("refuses %j", async (caller, problem) => {
    expect(await settingsProblems(instance, caller)).toEqual([expect.stringMatching(problem)]);
  });

  it("reads the keys as the API does: every problem at once, with variable and place, and no key", async () => {
    const keys = join(folder, "keys");
    mkdirSync(keys);
    writeFileSync(join(keys, "good.pem"), signer.pem);
    writeFileSync(join(keys, "readme.txt"), "about these keys");
    const secret = signer.privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    writeFileSync(join(keys, "private.pem"), secret);
    const apiKeys = file("{}\nno key\n", "api-keys.jsonl");
    chmodSync(apiKeys, 0o600);
    const settings = {
      SVC_JWT_PUBLIC_KEY: signer.pem,
      SVC_JWT_JWKS_JSON: '{"keys":[{"kid":"a","kty":"oct","k":"YQ"}]}',
      SVC_JWT_PUBLIC_KEYS_DIR: keys,
      SVC_API_KEYS_FILE: apiKeys,
    };
    const problems = await settingsProblems(instance, settings);
    expect(problems).toEqual([
      "SVC_JWT_PUBLIC_KEY needs its key id in SVC_JWT_KID",
      "SVC_JWT_JWKS_JSON keys[0] cannot be read as a public key",
      `SVC_JWT_PUBLIC_KEYS_DIR ${keys}/private.pem is a private key; only the public one belongs here`,
      `SVC_JWT_PUBLIC_KEYS_DIR ${keys}/readme.txt cannot be read as a public key`,
      expect.stringMatching(/^SVC_API_KEYS_FILE .* is broken: line 1 is no API key: .*; line 2 is not JSON$/),
    ]);
    chmodSync(apiKeys, 0o640);
    expect(await settingsProblems(instance, settings)).toContain(
      `SVC_API_KEYS_FILE ${apiKeys} can be read by others; run: chmod 600 ${apiKeys}`,
    );
    expect(problems.join()).not.toContain(secret.split("\n")[1]);
  });

  it("accepts keys that the API accepts", async () => {
    const apiKeys = apiKeysFile();
    apiKeys.put([apiKeyRecord(newApiKey())]);
    const settings = { SERVICE_HOST: "0.0.0.0", SVC_API_KEYS_FILE: apiKeys.path };
    expect(await settingsProblems(instance, settings)).toEqual([]);
    apiKeys.remove();
    const open = { SERVICE_HOST: "0.0.0.0", SVC_ALLOW_AUTH_PROVIDER_NONE: "true" };
    expect(await settingsProblems(instance, open)).toEqual([]);
  });

  it("tells of a mode that is neither true nor false", async () => {
    const problems = await settingsProblems(instance, { LOCAL_MODE: "yes", SVC_API_KEYS_FILE: "/k" });
    expect(problems[0]).toMatch(/^LOCAL_MODE must be exactly true or false/);
  });

  it("warns of names that have no effect, with their place", () => {
    const settings = readSettings({ settings: file("A=1\nMAX_REQEUSTS=2\nEDITOR=x") }, { LOGLEVEL: "debug" });
    expect(settingsWarnings(settings, { LOGLEVEL: "debug", HOME: "/root" }, instance)).toEqual([
      "LOGLEVEL is not known and has no effect; did you mean LOG_LEVEL?",
      `${settings.file}:2: MAX_REQEUSTS is not known and has no effect; did you mean MAX_REQUESTS?`,
      `${settings.file}:1: A is not known and has no effect`,
      `${settings.file}:3: EDITOR is not known and has no effect`,
    ]);
  });

  it.each([
    [{ S3_ENDPOINT: "http://s3", S3_BUCKET: "b" }, ["S3_ENDPOINT", "S3_BUCKET"], "STORAGE_DRIVER is not s3"],
    [{ STORAGE_DRIVER: "fs", S3_REGION: "r", STORAGE_DIR: "/o" }, ["S3_REGION"], "STORAGE_DRIVER is not s3"],
    [{ STORAGE_DRIVER: "s3", S3_REGION: "r", STORAGE_DIR: "/o" }, ["STORAGE_DIR"], "STORAGE_DRIVER is s3"],
    [{ REDIS_TLS: "true", REDIS_PORT: "1" }, ["REDIS_TLS", "REDIS_PORT"], /^without REDIS_URL or REDIS_HOST/],
    [{ REDIS_TLS: "true", REDIS_HOST: "redis" }, [], ""],
    [{ REDIS_TLS_CA: "/ca", REDIS_URL: "rediss://redis" }, [], ""],
  ])("of a store that is not used are warned of: %j", (set, names, reason) => {
    const warnings = settingsWarnings(readSettings({}, set), set, instance);
    expect(warnings.map((warning) => warning.split(" has no effect: "))).toEqual(
      names.map((name) => [name, expect.stringMatching(reason)]),
    );
  });

  it("warns of variables that this version does nothing for", () => {
    const settings = readSettings({ settings: file("SANDBOX_WORKSPACE_ROOT=/x") }, {});
    expect(settingsWarnings(settings, {}, instance)).toEqual([
      "SANDBOX_WORKSPACE_ROOT has no effect: this version does not offer what it is about",
    ]);
  });
});

describe("a settings file that others may read", () => {
  const instance = resolveInstance({ "data-dir": dataDir }, {});
  it.each([
    ["SVC_METRICS_TOKEN=x", 0o644, 1],
    ["SVC_METRICS_TOKEN=x", 0o600, 0],
    ["MAX_REQUESTS=1", 0o644, 0],
  ])("with %s and mode %i gives %i warnings", (text, mode, count) => {
    const settings = file(text, "mode.env");
    chmodSync(settings, mode);
    const warnings = settingsWarnings(readSettings({ settings }, {}), {}, instance);
    expect(warnings).toEqual(Array(count).fill(expect.stringContaining("can be read by others: chmod 600")));
  });
});

describe("the effective settings", () => {
  it("tell value, source and default, and no secret", () => {
    const set = {
      MAX_REQUESTS: "5",
      LOG_LEVEL: "debug",
      SERVICE_PORT: "1",
      S3_SECRET_KEY: "hunter2",
      JOB_TIMEOUT: "90000",
    };
    const list = effectiveSettings({
      given: {
        ...set,
        SERVICE_PORT: "11",
        PORT: "2000",
        PYTHON_CONCURRENCY: "4",
        SVC_INTERNAL_SERVICE_TOKEN: "hunter2",
      },
      set,
      fromFile: new Set(["LOG_LEVEL"]),
      fromFlags: new Set(["SERVICE_PORT"]),
    });
    const of = (name: string) => list.find((each) => each.name === name);
    expect(of("MAX_REQUESTS")).toMatchObject({ value: "5", source: "environment" });
    expect(of("LOG_LEVEL")).toEqual({ name: "LOG_LEVEL", value: "debug", source: "file", default: "info" });
    expect(of("SERVICE_PORT")).toMatchObject({ value: "11", source: "flag", default: "3112" });
    expect(of("PYTHON_CONCURRENCY")).toMatchObject({ value: "4", source: "./svc" });
    expect(of("SVC_INTERNAL_SERVICE_TOKEN")).toMatchObject({ value: "[set]", source: "./svc" });
    expect(of("S3_SECRET_KEY")).toMatchObject({ value: "[set]", source: "environment" });
    expect(of("MAX_RUN_TIMEOUT")).toMatchObject({ value: "90000", source: "default" });
    expect(of("PORT")).toMatchObject({ value: "2000", source: "default" });
    expect(of("REDIS_PASSWORD")).toMatchObject({ value: "", source: "default" });
    expect(JSON.stringify(list)).not.toContain("hunter2");
  });

  it("follow a merge of file and environment", () => {
    const { values, fromFile } = mergeSettings(
      new Map([["MAX_REQUESTS", { value: "7", line: 1 }]]),
      "/f",
      {},
    );
    expect([values, [...fromFile]]).toEqual([{ MAX_REQUESTS: "7" }, ["MAX_REQUESTS"]]);
  });
});
