import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { open, readdir, readFile, readlink, stat, utimes, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CHECKED_HEADER, DELETED_RECORD, newId, objectRecordKey, snapshotNamespaceOf } from "@svc/contracts";
import { createLog, createRedis, loadConfig } from "@svc/service-kit";
import { INTERNAL_TOKEN, startFileServer } from "@svc/test-kit/components/file-server";
import { startRedis } from "@svc/test-kit/components/redis";
import { slow } from "@svc/test-kit/jail/slowness";
import { until } from "@svc/test-kit/system/processes";
import { describe, expect, type TestContext, test } from "vitest";
import { Ledger } from "../../src/quota/ledger.ts";
import { RecordCache } from "../../src/record-cache.ts";
import { sweepOnce } from "../../src/retention.ts";
import { createStore } from "../../src/storage.ts";

const TOKEN = { "x-svc-internal-token": INTERNAL_TOKEN };
const PUT_HEADERS = {
  ...TOKEN,
  "content-type": "application/octet-stream",
  "x-original-filename": "a.bin",
  "x-svc-namespace": "acme:user:u1",
};

/** A store and a server of the test's own: tests wait part of their time, side by side. */
async function start({ onTestFinished }: TestContext, env: Record<string, string> = {}) {
  const redisServer = await startRedis();
  onTestFinished(redisServer.stop);
  const server = await startFileServer(redisServer.url, env);
  onTestFinished(server.stop);
  const put = (path: string, body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    fetch(server.url + path, { method: "PUT", headers: { ...PUT_HEADERS, ...headers }, body });
  const get = (path: string, init: RequestInit = {}) => fetch(server.url + path, { headers: TOKEN, ...init });
  /** Sends the head of a PUT and the first bytes of its body, and leaves the rest open. */
  const beginPut = async (path: string, announced: number, sent: number) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    const headers = Object.entries(PUT_HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.on("error", () => undefined);
    socket.write(
      `PUT ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${announced}\r\n${headers.join("")}\r\n`,
    );
    socket.write(randomBytes(sent));
    await until(async () => (await server.storedFiles()).length > 0, SOON_MS);
    return socket;
  };
  const fileOf = (path: string) => `${server.directory}/sessions/${nameOf(path)}`;
  return {
    redisServer,
    server,
    put,
    get,
    beginPut,
    fileOf,
    /** As if nobody had used an object for two days. */
    age: async (path: string) => {
      const then = new Date(Date.now() - 2 * DAY_MS);
      await utimes(fileOf(path), then, then);
    },
    /** Objects that are stored, as `nameOf` names them. */
    names: async () => (await server.storedFiles()).map((file) => file.slice(-43)),
    settings: { REDIS_URL: redisServer.url, STORAGE_DIR: server.directory, ...env },
  };
}

const DAY_MS = 86_400_000;
const SOON_MS = slow(20_000);
const objectPath = (session = newId(), file = newId()) => `/sessions/${session}/objects/${file}`;
const nameOf = (path: string) => path.slice(10).replace("/objects", "");

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

describe.concurrent("a broken-off upload", () => {
  test("leaves nothing when the client goes away", async (context) => {
    const { server, get, beginPut } = await start(context);
    for (const kind of ["objects", "pending"]) {
      const path = `/sessions/${newId()}/${kind}/${newId()}`;
      const socket = await beginPut(path, 10_000_000, 3_000_000);
      socket.destroy();
      await until(async () => (await server.storedFiles()).length === 0, SOON_MS);
      expect((await get(path.replace("pending", "objects"))).status).toBe(404);
    }
  });

  test("is never visible when the server is killed, and the next start can store under the same id", async (context) => {
    const { server, put, get, beginPut } = await start(context);
    const path = objectPath();
    const socket = await beginPut(path, 10_000_000, 9_000_000);
    await server.kill();
    socket.destroy();
    await server.restart();
    expect((await get(path)).status).toBe(404);
    expect((await get(path.slice(0, -22))).status).toBe(404);
    const bytes = randomBytes(1000);
    expect((await put(path, bytes)).status).toBe(200);
    expect(Buffer.from(await (await get(path)).arrayBuffer())).toEqual(bytes);
  });

  test("leaves what a start removes when it is old", async (context) => {
    const { server, beginPut } = await start(context);
    const socket = await beginPut(objectPath(), 10_000_000, 3_000_000);
    await server.kill();
    socket.destroy();
    const [left = ""] = await server.storedFiles();
    await server.restart();
    expect(left).toContain("/incoming/");
    // The young one is still there. A start also tries the store with a small file, which a kill may leave.
    expect(await server.storedFiles()).toContain(left);
    const old = new Date(Date.now() - 7 * 3_600_000);
    await utimes(left, old, old);
    await server.restart();
    await until(async () => !(await server.storedFiles()).includes(left), SOON_MS);
  });
});

describe.concurrent("a stored object", () => {
  test("survives the kill of the server right after its answer", async (context) => {
    const { server, put, get } = await start(context);
    const session = newId();
    const bytes = randomBytes(100_000);
    const paths = Array.from({ length: 10 }, () => objectPath(session));
    await Promise.all(paths.map(async (path) => expect((await put(path, bytes)).status).toBe(200)));
    await server.kill();
    await server.restart();
    for (const path of paths) expect(Buffer.from(await (await get(path)).arrayBuffer())).toEqual(bytes);
  });

  test("that was damaged on disk ends as a cut connection, not as a complete answer", async (context) => {
    const { put, get, fileOf } = await start(context);
    const path = objectPath();
    await put(path, randomBytes(5_000_000));
    const file = await open(fileOf(path), "r+");
    await file.write(Buffer.from("damage"), 0, 6, 4_900_000);
    await file.close();
    const answer = await get(path);
    expect(answer.status).toBe(200);
    await expect(answer.arrayBuffer()).rejects.toThrow();
    const checked = await get(path, { headers: { ...TOKEN, [CHECKED_HEADER]: "true" } });
    expect([checked.status, ((await checked.json()) as { error: string }).error]).toEqual([
      500,
      "internal_error",
    ]);
    expect((await get(path, { headers: { ...TOKEN, range: "bytes=0-99" } })).status).toBe(206);
  });
});

describe.concurrent("load", () => {
  test("fifty uploads at once all arrive whole", async (context) => {
    const { server, put, get } = await start(context);
    const session = newId();
    const stored = await Promise.all(
      Array.from({ length: 50 }, async (_unused, index) => {
        const path = objectPath(index % 2 === 0 ? session : newId());
        const bytes = randomBytes(200_000 + index);
        expect((await put(path, bytes)).status).toBe(200);
        return { path, bytes };
      }),
    );
    for (const { path, bytes } of stored)
      expect(Buffer.from(await (await get(path)).arrayBuffer())).toEqual(bytes);
    const list = (await (await get(`/sessions/${session}/objects`)).json()) as string[];
    expect(list).toHaveLength(25);
    expect((await server.storedFiles()).length).toBe(50);
  });

  test("readers that do not read cost no memory and their leaving closes the files", async (context) => {
    const { server, put, get, fileOf } = await start(context);
    const path = objectPath();
    await put(path, randomBytes(90_000_000));
    await (await get(path)).arrayBuffer();
    const before = await residentBytes(server.pid);
    const sockets = Array.from({ length: 20 }, () => {
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
      socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nx-svc-internal-token: ${INTERNAL_TOKEN}\r\n\r\n`);
      return socket.pause();
    });
    const openFiles = async () => {
      const directory = `/proc/${server.pid}/fd`;
      const links = await Promise.all(
        (await readdir(directory)).map((fd) => readlink(`${directory}/${fd}`).catch(() => "")),
      );
      return links.filter((link) => link === fileOf(path)).length;
    };
    await until(async () => (await openFiles()) === 20, SOON_MS, openFiles);
    // Time to read on, for a server that would.
    await delay(1500);
    expect((await residentBytes(server.pid)) - before).toBeLessThan(100_000_000);
    expect(await openFiles()).toBe(20);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await openFiles()) === 0, SOON_MS);
  });
});

describe.concurrent("without Redis", () => {
  test("objects are stored and read, deletions are refused, readiness says why", async (context) => {
    const { redisServer, server, put, get } = await start(context);
    const path = objectPath();
    await put(path, randomBytes(10));
    await redisServer.kill();
    expect((await get(path)).status).toBe(200);
    expect((await get(`${path}/metadata`)).status).toBe(200);
    expect((await put(objectPath(), randomBytes(10))).status).toBe(200);
    const ready = await get("/ready");
    expect([ready.status, await ready.json()]).toEqual([
      503,
      {
        status: "not_ready",
        checks: { redis: "failed", clock: "ok", storage: "ok", descriptors: "ok", running: "ok" },
        reasons: { redis: "Redis cannot be reached" },
      },
    ]);
    const deletion = await fetch(server.url + path, { method: "DELETE", headers: TOKEN });
    expect([deletion.status, ((await deletion.json()) as { error: string }).error]).toEqual([
      503,
      "store_unavailable",
    ]);
    expect((await get(path)).status).toBe(200);
    await redisServer.start();
    await until(async () => (await get("/ready")).status === 200, SOON_MS);
    expect((await fetch(server.url + path, { method: "DELETE", headers: TOKEN })).status).toBe(200);
  });
});

/** A whole sweep, as a file server with these settings makes it. Answers Redis, in which it marked what it removed. */
async function sweep({ onTestFinished }: TestContext, settings: Record<string, string>) {
  const config = loadConfig("file-server", {
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    STORAGE_DRIVER: "fs",
    LOG_LEVEL: "fatal",
    ...settings,
  });
  const log = createLog("file-server", config);
  const redis = createRedis(config, log, { use: "commands" });
  onTestFinished(() => redis.disconnect());
  await once(redis, "ready");
  const cache = new RecordCache(redis, config.SESSION_CACHE_TTL, log);
  const redisTime = () => new Ledger(redis).now();
  await sweepOnce({ config, log, store: await createStore(config), cache, redisTime });
  return redis;
}

describe.concurrent("retention", () => {
  test("removes bytes and record of what was not used for its life, and nothing else", async (context) => {
    const { put, get, age, names, fileOf, settings } = await start(context);
    const [idle, used] = [objectPath(), objectPath()];
    for (const path of [idle, used]) {
      await put(path, randomBytes(10));
      await age(path);
    }
    expect((await get(`${used}/metadata`)).status).toBe(200);
    await until(async () => Date.now() - (await stat(fileOf(used))).mtimeMs < DAY_MS, SOON_MS);
    const redis = await sweep(context, settings);
    expect(await names()).toEqual([nameOf(used)]);
    const [, , session = "", , file = ""] = idle.split("/");
    expect(await redis.get(objectRecordKey(session, file))).toBe(DELETED_RECORD);
    expect((await get(idle)).status).toBe(404);
    expect((await get(used)).status).toBe(200);
  });

  test("is looked after again and again while the server runs", async (context) => {
    const { put, age, names } = await start(context, { SESSION_CACHE_TTL: "24" });
    for (let round = 0; round < 2; round++) {
      const path = objectPath();
      await put(path, randomBytes(10));
      await age(path);
      await until(async () => !(await names()).includes(nameOf(path)), SOON_MS);
    }
  });

  test("does not begin in a process whose clock is days ahead", async (context) => {
    const ahead = `const { now } = Date; Date.now = () => now() + ${8 * DAY_MS};`;
    const { server, put, get, names } = await start(context, {
      // Such a life is looked after every second.
      SESSION_CACHE_TTL: "24",
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(ahead)}`,
    });
    const path = objectPath();
    await put(path, randomBytes(10));
    await server.restart();
    await until(async () => server.lines.some((line) => line.includes("storage skipped")), SOON_MS);
    expect(await names()).toEqual([nameOf(path)]);
    expect(((await (await get("/ready")).json()) as { reasons: unknown }).reasons).toEqual({
      clock: `its clock is ${(8 * DAY_MS) / 1000} s ahead of Redis's`,
    });
  });

  for (const kind of ["object", "leftover", "session"] as const) {
    test(`removes the others where one ${kind} cannot be removed`, async (context) => {
      const { server, put, age, names, fileOf, settings } = await start(context);
      const paths = Array.from({ length: 12 }, () => objectPath());
      for (const path of paths) await put(path, randomBytes(10));
      // Its own first sweep shall not come before the one that is looked at.
      await server.kill();
      for (const path of paths) await age(path);
      const leftover = `${server.directory}/incoming/${newId()}`;
      const object = fileOf(paths[0] ?? "");
      const stuck = { object, leftover, session: dirname(object) }[kind];
      if (kind === "leftover") await writeFile(leftover, "");
      await utimes(stuck, 0, 0);
      execFileSync("chattr", ["+i", stuck]);
      context.onTestFinished(() => void execFileSync("chattr", ["-i", stuck]));
      await sweep(context, settings);
      const left = kind === "session" ? object : stuck;
      expect(await names()).toEqual([left.slice(-43)]);
    });
  }

  test("gives uploads and outputs lives of their own", async (context) => {
    const { server, put, age, names, settings } = await start(context);
    const [output, upload] = [objectPath(), objectPath()];
    await put(output, randomBytes(10));
    const [, , session = "", , file = ""] = upload.split("/");
    await put(`/sessions/${session}/pending/${file}`, randomBytes(10));
    const commit = await fetch(`${server.url}/sessions/${session}/commit`, {
      method: "POST",
      headers: { ...TOKEN, "content-type": "application/json" },
      body: JSON.stringify({ namespace: "acme:user:u1", read_only: false, files: [file] }),
    });
    expect(commit.status).toBe(200);
    for (const path of [output, upload]) await age(path);
    const days = (count: number) => String(count * 86_400);
    const sweepWith = (uploads: number, outputs: number) =>
      sweep(context, {
        ...settings,
        SVC_UPLOAD_TTL_SECONDS: days(uploads),
        SVC_OUTPUT_TTL_SECONDS: days(outputs),
      });
    await sweepWith(3, 30);
    expect((await names()).sort()).toEqual([nameOf(output), nameOf(upload)].sort());
    await sweepWith(1, 30);
    expect(await names()).toEqual([nameOf(output)]);
    await sweepWith(30, 1);
    expect(await names()).toEqual([]);
  });

  test("keeps snapshots of sessions for twice the life of a session, which begins with a run that may not reach them", async (context) => {
    const { put, age, names, settings } = await start(context);
    const [snapshot, file] = [objectPath(), objectPath()];
    const namespace = snapshotNamespaceOf("acme:user:u1");
    await put(snapshot, randomBytes(10), { "x-svc-namespace": namespace });
    await put(file, randomBytes(10), { "x-svc-namespace": "acme:user:session-state" });
    for (const path of [snapshot, file]) await age(path);
    await sweep(context, { ...settings, SVC_SESSION_STATE_TTL_SECONDS: String(1.5 * 86_400) });
    expect(await names()).toEqual([nameOf(snapshot)]);
    await sweep(context, { ...settings, SVC_SESSION_STATE_TTL_SECONDS: "43200" });
    expect(await names()).toEqual([]);
  });
});
