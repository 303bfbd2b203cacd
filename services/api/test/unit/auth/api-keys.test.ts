/** The file of API keys as the API reads it, at the start and when it changes. */

import { chmod, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ApiKeys } from "@svc/api/auth/api-keys";
import { TokenRefused } from "@svc/api/auth/refused";
import { formatApiKeys } from "@svc/contracts";
import { ConfigError, type Log } from "@svc/service-kit";
import { type ApiKeysFile, apiKeyRecord, apiKeysFile, newApiKey } from "@svc/test-kit/credentials/api-keys";
import { thrown } from "@svc/test-kit/thrown";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let file: ApiKeysFile;
let path: string;
let logged: string[];
const opened: ApiKeys[] = [];
beforeEach(() => {
  file = apiKeysFile();
  path = file.path;
  logged = [];
});
afterEach(() => {
  for (const keys of opened.splice(0)) keys.close();
  file.remove();
});

const line = (level: string) => (fields: unknown, text: string) =>
  void logged.push(`${level} ${text} ${JSON.stringify(fields)}`);
const log = { info: line("info"), warn: line("warn"), error: line("error") } as unknown as Log;

async function open(): Promise<ApiKeys> {
  const keys = await ApiKeys.open(path, log);
  opened.push(keys);
  return keys;
}

async function problemOf(): Promise<string> {
  const outcome = await open().catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(ConfigError);
  return (outcome as ConfigError).problems.join();
}

const reasonOf = (keys: ApiKeys, key: string): string =>
  thrown(TokenRefused, () => keys.callerOf(key))?.reason ?? "accepted";

describe("at the start", () => {
  it.each([0o640, 0o604, 0o660, 0o644])("a file of mode %o is refused with the fix", async (mode) => {
    file.put([]);
    await chmod(path, mode);
    expect(await problemOf()).toBe(`SVC_API_KEYS_FILE ${path} can be read by others; run: chmod 600 ${path}`);
  });

  it("a file that is not there is refused, and the message says what makes it", async () => {
    expect(await problemOf()).toContain("./svc key add NAME makes it");
  });

  it("a broken file is refused with its line, and nothing of it is shown", async () => {
    const key = newApiKey();
    await writeFile(path, `${formatApiKeys([apiKeyRecord(newApiKey())])}${key}\n`, { mode: 0o600 });
    const problem = await problemOf();
    expect(problem).toContain("line 2 is not JSON");
    expect(problem).not.toContain(key);
  });

  it("a relative path, a folder and a large file are refused", async () => {
    await expect(ApiKeys.open("api-keys.jsonl", log)).rejects.toThrow("must be an absolute path");
    await mkdir(path, { mode: 0o700 });
    expect(await problemOf()).toContain("is not a regular file");
    await rm(path, { recursive: true });
    await writeFile(path, Buffer.alloc(9 * 2 ** 20), { mode: 0o600 });
    expect(await problemOf()).toContain("is larger than");
  });

  it("an empty file holds no key, and the log says so", async () => {
    file.put([]);
    expect(reasonOf(await open(), newApiKey())).toBe("unknown_api_key");
    expect(logged.join()).toContain("no API key is loaded");
  });

  it("a link to the file is followed, as for mounted secrets", async () => {
    const key = newApiKey();
    await writeFile(join(file.folder, "real"), formatApiKeys([apiKeyRecord(key)]), { mode: 0o600 });
    await symlink("real", path);
    expect(reasonOf(await open(), key)).toBe("accepted");
  });
});

describe("a change of the file", () => {
  it("adds, revokes and removes keys without a restart", async () => {
    const [one, two] = [newApiKey(), newApiKey()];
    file.put([apiKeyRecord(one)]);
    const keys = await open();
    expect([reasonOf(keys, one), reasonOf(keys, two)]).toEqual(["accepted", "unknown_api_key"]);
    file.put([apiKeyRecord(one, { revoked_at: "2026-11-24T10:00:00Z" }), apiKeyRecord(two)]);
    await expect.poll(() => [reasonOf(keys, one), reasonOf(keys, two)]).toEqual(["revoked", "accepted"]);
    file.put([apiKeyRecord(one)]);
    await expect
      .poll(() => [reasonOf(keys, one), reasonOf(keys, two)])
      .toEqual(["accepted", "unknown_api_key"]);
    expect(logged.filter((text) => text.startsWith("info API keys changed"))).toHaveLength(2);
  });

  it.each<[string, () => Promise<void>]>([
    ["broken", () => writeFile(path, "{", { mode: 0o600 })],
    ["open to others", () => chmod(path, 0o640)],
    ["a folder", () => rm(path).then(() => mkdir(path, { mode: 0o700 }))],
  ])(
    "to one that is %s keeps the old keys, says so once, and a right one counts again",
    async (_what, change) => {
      const [one, two] = [newApiKey(), newApiKey()];
      file.put([apiKeyRecord(one)]);
      const keys = await open();
      await change();
      for (let times = 0; times < 3; times++) await keys.reload();
      expect(reasonOf(keys, one)).toBe("accepted");
      const errors = logged.filter((text) => text.startsWith("error "));
      expect(errors).toHaveLength(1);
      expect(errors[0]).toContain("the last ones stay in use");
      await rm(path, { recursive: true });
      file.put([apiKeyRecord(two)]);
      await keys.reload();
      expect([reasonOf(keys, one), reasonOf(keys, two)]).toEqual(["unknown_api_key", "accepted"]);
    },
  );

  it("that removes it leaves no key in force", async () => {
    const key = newApiKey();
    file.put([apiKeyRecord(key)]);
    const keys = await open();
    await rm(path);
    await keys.reload();
    expect(reasonOf(keys, key)).toBe("unknown_api_key");
    expect(logged.join()).toContain("error no API key is loaded");
    file.put([apiKeyRecord(key)]);
    await keys.reload();
    expect(reasonOf(keys, key)).toBe("accepted");
  });
});
