/** Quotas with real file servers and a real Redis: exact under load, and right again after whatever was lost. */
import { execFileSync } from "node:child_process";
import { mkdir, rm, utimes } from "node:fs/promises";
import { ACCOUNT_HEADER, newId, objectRecordKey, snapshotNamespaceOf } from "@svc/contracts";
import {
  INTERNAL_TOKEN,
  type PrivateFileServer,
  startFileServer,
} from "@svc/test-kit/components/file-server";
import { startRedis } from "@svc/test-kit/components/redis";
import { slow } from "@svc/test-kit/jail/slowness";
import { until } from "@svc/test-kit/system/processes";
import { Redis } from "ioredis";
import { describe, expect, type TestContext, test } from "vitest";
import { Ledger } from "../../src/quota/ledger.ts";

const ME = "acme:user:u1";
const OTHER = "acme:user:u2";
const TOKEN = { "x-svc-internal-token": INTERNAL_TOKEN };
const headersOf = (namespace: string) => ({
  ...TOKEN,
  "content-type": "application/octet-stream",
  "x-original-filename": "a.bin",
  "x-svc-namespace": namespace,
});
const DAY_MS = 86_400_000;
const SOON_MS = slow(60_000);
const QUOTAS = {
  SVC_QUOTA_MAX_BYTES: "1000",
  SVC_QUOTA_MAX_OBJECTS: "5",
  SVC_QUOTA_SESSION_STATE_MAX_BYTES: "500",
};
const entriesOf = (account: string) => `svc:quota:entries:${account}`;
const objectPath = (session = newId(), file = newId()) => `/sessions/${session}/objects/${file}`;
const nameOf = (path: string) => path.slice(10).replace("/objects", "");

async function start({ onTestFinished }: TestContext, env: Record<string, string> = QUOTAS) {
  const redisServer = await startRedis();
  onTestFinished(redisServer.stop);
  const server = await startFileServer(redisServer.url, env);
  onTestFinished(server.stop);
  const redis = new Redis(redisServer.socket);
  redis.on("error", () => undefined);
  onTestFinished(() => redis.disconnect());
  const put = (size: number, namespace = ME, path = objectPath(), at: PrivateFileServer = server) =>
    fetch(at.url + path, { method: "PUT", headers: headersOf(namespace), body: "x".repeat(size) });
  const call = (method: string, path: string, init: RequestInit = {}) =>
    fetch(server.url + path, { method, headers: TOKEN, ...init });
  const stage = (session: string, file: string, size: number, account = ME) =>
    call("PUT", `/sessions/${session}/pending/${file}`, {
      headers: { ...headersOf(account), [ACCOUNT_HEADER]: account },
      body: "x".repeat(size),
    });
  const commit = (session: string, files: string[], namespace = ME, account = ME) =>
    call("POST", `/sessions/${session}/commit`, {
      headers: { ...TOKEN, "content-type": "application/json" },
      body: JSON.stringify({ namespace, account, read_only: false, files }),
    });
  /** Bytes and objects that an account holds. */
  const held = async (account = ME) => [
    Number(await redis.hget(`svc:quota:sizes:${account}`, "total")),
    await redis.zcard(entriesOf(account)),
  ];
  return { redisServer, server, redis, put, call, stage, commit, held };
}

async function stored(answer: Promise<Response>): Promise<void> {
  expect((await answer).status).toBe(200);
}

interface Refusal {
  error: string;
  message: string;
  quota: object;
}
async function refusal(answer: Promise<Response>): Promise<[number, Refusal]> {
  const given = await answer;
  return [given.status, (await given.json()) as Refusal];
}

describe.concurrent("a quota of bytes", () => {
  test("is exact when two file servers take writes at the same time", async (context) => {
    const { redisServer, server, put, held } = await start(context);
    const second = await startFileServer(redisServer.url, { ...QUOTAS, STORAGE_DIR: server.directory });
    context.onTestFinished(second.stop);
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, at) => put(300, ME, objectPath(), at % 2 === 0 ? server : second)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, ...Array(9).fill(413)]);
    expect(await held()).toEqual([900, 3]);
    expect((await server.storedFiles()).length).toBe(3);
    await stored(put(100));
    expect(await held()).toEqual([1000, 4]);
  });

  test("names what is in use, and does not hold for others", async (context) => {
    const { put, call, held } = await start(context);
    await stored(put(900));
    expect(await refusal(put(101))).toMatchObject([
      413,
      {
        error: "quota_exceeded",
        message: "There is no room for 101 more bytes: 900 of 1,000 bytes are in use.",
        quota: { kind: "files", resource: "bytes", used: 900, limit: 1000, asked: 101 },
      },
    ]);
    await stored(put(101, OTHER));
    expect([await held(), await held(OTHER)]).toEqual([
      [900, 1],
      [101, 1],
    ]);
    const metrics = await (await call("GET", "/metrics")).text();
    expect(metrics).toMatch(/svc_quota_refusals_total\{kind="files",resource="bytes"\} 1\n/);
  });

  test("has room again after a deletion, and none twice for one object", async (context) => {
    const { put, call, held } = await start(context);
    const path = objectPath();
    for (let sent = 0; sent < 2; sent++) await stored(put(700, ME, path));
    expect(await held()).toEqual([700, 1]);
    expect((await put(600, ME, path)).status).toBe(400);
    expect(await held()).toEqual([700, 1]);
    expect((await put(400)).status).toBe(413);
    await stored(call("DELETE", path));
    expect(await held()).toEqual([0, 0]);
    await stored(put(1000));
  });

  test("of the states of sessions is one of its own", async (context) => {
    const { put, held } = await start(context);
    const states = snapshotNamespaceOf(ME);
    await stored(put(1000));
    await stored(put(400, states));
    const [status, { quota }] = await refusal(put(101, states));
    expect(status).toBe(413);
    expect(quota).toEqual({ kind: "session_states", resource: "bytes", used: 400, limit: 500, asked: 101 });
    expect([await held(), await held(states)]).toEqual([
      [1000, 1],
      [400, 1],
    ]);
  });
});

test.concurrent("a quota of objects holds for empty files, too", async (context) => {
  const { put, held } = await start(context);
  const answers = await Promise.all(Array.from({ length: 8 }, () => put(0)));
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(5).fill(200), 429, 429, 429]);
  expect(await held()).toEqual([0, 5]);
  expect(await refusal(put(1))).toMatchObject([
    429,
    {
      message: "There is no room for 1 more file: 5 of 5 files are stored.",
      quota: { kind: "files", resource: "objects", used: 5, limit: 5, asked: 1 },
    },
  ]);
});

test.concurrent("without quotas nothing is counted", async (context) => {
  const { put, redis } = await start(context, {});
  await stored(put(10_000));
  expect(await redis.keys("svc:quota:*")).toEqual([]);
});

test.concurrent("with Redis away nothing is stored", async (context) => {
  const { put, server, redisServer } = await start(context);
  await redisServer.kill();
  expect(await refusal(put(1))).toMatchObject([503, { error: "store_unavailable" }]);
  expect(await server.storedFiles()).toEqual([]);
});

describe.concurrent("an upload of several files", () => {
  test("counts for its uploader, whoever it is for, and once", async (context) => {
    const { stage, commit, held, call } = await start(context);
    const [session, one, two] = [newId(), newId(), newId()];
    await stored(stage(session, one, 400));
    await stored(stage(session, two, 500));
    expect(await held()).toEqual([900, 2]);
    await stored(commit(session, [one, two], "acme:agent:a"));
    expect([await held(), await held("acme:agent:a")]).toEqual([
      [900, 2],
      [0, 0],
    ]);
    await stored(call("DELETE", objectPath(session, one)));
    expect(await held()).toEqual([500, 1]);
  });

  test("that has no room for a file gives its room back with the discarded session", async (context) => {
    const { stage, call, held, put } = await start(context);
    const [session, other] = [newId(), newId()];
    await stored(stage(session, newId(), 400));
    await stored(stage(other, newId(), 100));
    await stored(put(100));
    expect((await stage(session, newId(), 401)).status).toBe(413);
    await stored(
      call("DELETE", `/sessions/${session}/pending`, { headers: { ...TOKEN, [ACCOUNT_HEADER]: ME } }),
    );
    expect(await held()).toEqual([200, 2]);
  });

  test("that takes hours holds the room of its files until it ends", async (context) => {
    const { stage, commit, held, put, redis } = await start(context);
    const [session, one] = [newId(), newId()];
    await stored(stage(session, one, 900));
    // As if the form had been sent for five hours since.
    await redis.zincrby(entriesOf(ME), 5 * 3_600_000, `${session}/${one}`);
    expect((await stage(session, newId(), 200)).status).toBe(413);
    expect((await put(200)).status).toBe(413);
    await stored(commit(session, [one]));
    expect(await held()).toEqual([900, 1]);
  });

  test("that another file server commits meanwhile stays counted when it is discarded", async ({
    onTestFinished,
  }) => {
    const { socket, stop } = await startRedis();
    onTestFinished(stop);
    const clients = [new Redis(socket), new Redis(socket)] as const;
    onTestFinished(() => clients.forEach((client) => void client.disconnect()));
    const [discarding, committing] = [new Ledger(clients[0]), new Ledger(clients[1])];
    for (let round = 1; round <= 20; round++) {
      const [session, other] = [newId(), newId()];
      const objects = [session, other].map((own) => ({ address: { session: own, file: newId() }, size: 10 }));
      await committing.reserve(ME, objects, { bytes: 0, objects: 0 });
      await Promise.all([
        discarding.releaseSession(ME, session),
        committing.settle(ME, objects.slice(0, 1)),
        discarding.releaseSession(ME, other),
      ]);
      expect(await committing.held(ME)).toEqual({ bytes: 10 * round, objects: round });
    }
  });

  test("whose reservation has ended is refused as a whole where the room is gone", async (context) => {
    const { stage, commit, held, put, redis } = await start(context);
    const [session, one, two] = [newId(), newId(), newId()];
    await stored(stage(session, one, 400));
    await stored(stage(session, two, 400));
    for (const file of [one, two]) await redis.zadd(entriesOf(ME), -1, `${session}/${file}`);
    await stored(put(300));
    expect(await held()).toEqual([300, 1]);
    expect((await commit(session, [one, two])).status).toBe(413);
    expect(await held()).toEqual([300, 1]);
    await stored(commit(session, [one]));
    expect(await held()).toEqual([700, 2]);
  });
});

describe.concurrent("what is lost", () => {
  test("a process that dies between reservation and storing leaks nothing when the reservation ends", async (context) => {
    const { server, stage, put, held, redis, call } = await start(context);
    const [session, file] = [newId(), newId()];
    await stored(stage(session, file, 900));
    await server.kill();
    await server.restart();
    expect((await put(500)).status).toBe(413);
    const score = await redis.zscore(entriesOf(ME), `${session}/${file}`);
    const left = -Number(score) - Date.now();
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(6 * 3_600_000);
    // As if that time had passed.
    await redis.zadd(entriesOf(ME), -1, `${session}/${file}`);
    const usage = await call("GET", "/usage", { headers: { ...TOKEN, [ACCOUNT_HEADER]: ME } });
    expect(await usage.json()).toMatchObject({ quotas: [{ resource: "bytes", used: 0 }, { used: 0 }] });
    await stored(put(500));
    expect(await held()).toEqual([500, 1]);
  });

  test("what Redis lost is counted again by the next start", async (context) => {
    const { server, stage, commit, put, held, redis, call } = await start(context);
    const [session, file] = [newId(), newId()];
    await stored(put(300));
    await stored(put(400, OTHER));
    await stored(stage(session, file, 600));
    await stored(commit(session, [file], "acme:skill:s:v:1"));
    await redis.flushall();
    await server.restart();
    await until(
      async () => (await held()).join() === "900,2" && (await held(OTHER)).join() === "400,1",
      SOON_MS,
    );
    expect((await put(101)).status).toBe(413);
    await until(
      async () =>
        (await (await call("GET", "/metrics")).text()).includes(
          'svc_quota_stored_bytes{kind="files"} 1300\n',
        ),
      SOON_MS,
    );
  });

  test("what was removed by hand is given back by the next start", async (context) => {
    const { server, put, held, redis } = await start(context);
    const [gone, kept] = [objectPath(), objectPath()];
    await stored(put(800, ME, gone));
    await stored(put(50, ME, kept));
    await stored(put(10, OTHER));
    await rm(`${server.directory}/sessions/${nameOf(gone)}`);
    await redis.flushall();
    await redis.zadd(entriesOf(ME), 1, nameOf(gone), 1, nameOf(kept));
    await redis.hset(`svc:quota:sizes:${ME}`, { total: 850, [nameOf(gone)]: 800, [nameOf(kept)]: 50 });
    await redis.sadd("svc:quota:accounts", ME);
    await server.restart();
    await until(async () => (await held()).join() === "50,1", SOON_MS, held);
    await stored(put(950));
  });

  test("an object that cannot be read keeps no other from being counted", async (context) => {
    const { server, put, held, redis } = await start(context);
    await stored(put(300));
    await mkdir(`${server.directory}/sessions/${newId()}/${newId()}`, { recursive: true });
    await redis.flushall();
    await server.restart();
    await until(async () => (await held()).join() === "300,1", SOON_MS, held);
  });

  test("an object that cannot be read stays counted", async (context) => {
    const { server, put, held, redis, call } = await start(context);
    const path = objectPath();
    await stored(put(300, ME, path));
    await stored(put(20));
    const place = `${server.directory}/sessions/${nameOf(path)}`;
    await rm(place);
    await mkdir(place);
    const [session = "", file = ""] = nameOf(path).split("/");
    await redis.del(objectRecordKey(session, file));
    await server.restart();
    await until(
      async () =>
        /svc_quota_stored_bytes\{kind="files"\} [1-9]/.test(await (await call("GET", "/metrics")).text()),
      SOON_MS,
    );
    expect(await held()).toEqual([320, 2]);
  });

  test("objects that cannot be read while storage fails stay counted", async (context) => {
    const { server, put, held, redis } = await start(context);
    await stored(put(300));
    for (let object = 0; object < 40; object++)
      await mkdir(`${server.directory}/sessions/${newId()}/${newId()}`, { recursive: true });
    await redis.zadd(entriesOf(ME), 1, "lost");
    await redis.hset(`svc:quota:sizes:${ME}`, { total: 400, lost: 100 });
    const keys = [entriesOf(ME), `svc:quota:sizes:${ME}`, "svc:quota:accounts"];
    for (const key of keys) await redis.pexpire(key, 3_600_000);
    await server.restart();
    await until(async () => server.lines.some((line) => line.includes("storage failed")), SOON_MS);
    expect(await held()).toEqual([400, 2]);
    for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(DAY_MS);
  });

  test("objects that cannot be removed keep none from being counted", async (context) => {
    const { server, put, held, redis } = await start(context, { SVC_QUOTA_MAX_BYTES: "1000" });
    await stored(put(300));
    const session = newId();
    const stuck = Array.from({ length: 21 }, () => objectPath(session));
    for (const path of stuck) await stored(put(1, OTHER, path));
    await server.kill();
    const then = new Date(Date.now() - 2 * DAY_MS);
    for (const path of stuck) await utimes(`${server.directory}/sessions/${nameOf(path)}`, then, then);
    const directory = `${server.directory}/sessions/${session}`;
    execFileSync("chattr", ["+i", directory]);
    context.onTestFinished(() => void execFileSync("chattr", ["-i", directory]));
    await redis.flushall();
    await server.restart();
    await until(async () => server.lines.some((line) => line.includes("storage failed")), SOON_MS);
    expect(await held()).toEqual([300, 1]);
  });

  test("an object that expired gives its room back", async (context) => {
    const { server, put, held } = await start(context, { ...QUOTAS, SESSION_CACHE_TTL: "24" });
    const path = objectPath();
    await stored(put(900, ME, path));
    expect((await put(200)).status).toBe(413);
    const then = new Date(Date.now() - 2 * DAY_MS);
    await utimes(`${server.directory}/sessions/${nameOf(path)}`, then, then);
    await until(async () => (await put(200)).status === 200, SOON_MS, held);
    expect(await held()).toEqual([200, 1]);
  });
});
