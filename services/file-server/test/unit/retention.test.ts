import { mkdtemp, readdir, rm, symlink, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "@svc/contracts";
import { FsObjectStore, type ObjectAddress, type ObjectStore } from "@svc/object-store";
import { CLOCK_TOLERANCE_MS, createLog, loadConfig, type Redis } from "@svc/service-kit";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { expect, onTestFinished, test, vi } from "vitest";
import { RecordCache } from "../../src/record-cache.ts";
import { sweepOnce } from "../../src/retention.ts";

const DAY_MS = 86_400_000;
const OWN = { namespace: "acme:user:u1", filename: "a", contentType: "a/b", readOnly: false };
const config = loadConfig("file-server", {
  SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
  STORAGE_DRIVER: "fs",
  LOG_LEVEL: "fatal",
});
/** Takes every mark of a deletion. */
const redis = { set: async () => "OK" } as unknown as Redis;

/** Objects and an abandoned upload that are two days old by this machine's clock. */
async function oldStore() {
  const root = await mkdtemp(join(tmpdir(), "svc-test-retention-"));
  onTestFinished(() => rm(root, { recursive: true }));
  const store = await FsObjectStore.create({ root, useGranularityMs: 0 });
  const address = (): ObjectAddress => ({ session: newId(), file: newId() });
  for (const at of Array.from({ length: 20 }, address)) {
    await store.put(at, content(), OWN, { maxBytes: 10 });
  }
  await store.stage(address(), content(), OWN, { maxBytes: 10 });
  const paths = await filesBelow(root);
  const then = new Date(Date.now() - 2 * DAY_MS);
  for (const path of paths) await utimes(path, then, then);
  await utimes(join(root, "pending", (await readdir(join(root, "pending")))[0] as string), then, then);
  return { root, store, count: async () => (await filesBelow(root)).length };
}

async function* content() {
  yield Buffer.from("x");
}

async function filesBelow(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** A sweep where Redis tells this time. Answers what it warned of. */
async function sweep(store: ObjectStore, redisTime: () => Promise<number>): Promise<unknown[][]> {
  const log = createLog("file-server", config);
  const warn = vi.spyOn(log, "warn");
  const cache = new RecordCache(redis, config.SESSION_CACHE_TTL, log);
  await sweepOnce({ config, log, store, cache, redisTime });
  return warn.mock.calls;
}

test.each([
  { where: "ahead of", seconds: 8 * 86_400 },
  { where: "behind", seconds: 8 * 86_400 },
  { where: "ahead of", seconds: CLOCK_TOLERANCE_MS / 1000 + 1 },
])(
  "nothing is removed while this machine's clock is $seconds s $where Redis's",
  async ({ where, seconds }) => {
    const { store, count } = await oldStore();
    const aheadMs = seconds * 1000 * (where === "behind" ? -1 : 1);
    const warnings = await sweep(store, async () => Date.now() - aheadMs);
    expect(await count()).toBe(21);
    const reason = `its clock is ${seconds} s ${where} Redis's`;
    expect(warnings).toEqual([[{ reason }, expect.stringContaining("one time server")]]);
  },
);

test("nothing is removed while Redis does not tell its time", async () => {
  const { store, count } = await oldStore();
  const away = sweep(store, () => Promise.reject(new Error("Redis is away")));
  await expect(away).rejects.toThrow("Redis is away");
  expect(await count()).toBe(21);
});

test("what is old is removed while the clocks differ by less than is tolerated", async () => {
  const { store, count } = await oldStore();
  const warnings = await sweep(store, async () => Date.now() - CLOCK_TOLERANCE_MS + 1000);
  expect([await count(), warnings]).toEqual([0, []]);
});

test("a clock that is set forward during a sweep makes no further object old", async () => {
  const { store, count } = await oldStore();
  const clock = vi.spyOn(Date, "now");
  onTestFinished(() => clock.mockRestore());
  // By this clock the objects are half a day old: older than an upload may take, younger than the life of any kind.
  const early = Date.now() - 1.5 * DAY_MS;
  clock.mockReturnValue(early);
  const removeLeftovers = store.removeLeftovers.bind(store);
  store.removeLeftovers = (olderThan, passOver) => {
    clock.mockReturnValue(early + 8 * DAY_MS);
    return removeLeftovers(olderThan, passOver);
  };
  expect(await sweep(store, async () => early)).toEqual([]);
  expect(await count()).toBe(20);
});

test.each([
  { leftovers: 15, sessions: 9 },
  { leftovers: 30, sessions: 0 },
])(
  "what is old is removed beside $leftovers leftovers and $sessions sessions that cannot be",
  async ({ leftovers, sessions }) => {
    const { root, store, count } = await oldStore();
    const loops = async (folder: string, loops: number) => {
      for (const name of Array.from({ length: loops }, () => newId()))
        await symlink(name, join(root, folder, name));
    };
    await loops("incoming", leftovers);
    await loops("sessions", sessions);
    const warnings = await sweep(store, async () => Date.now());
    // The abandoned upload may come behind too many others.
    expect(await count()).toBe(leftovers > 20 ? 1 : 0);
    expect(warnings.length).toBeGreaterThan(20);
  },
);
