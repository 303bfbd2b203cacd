/** The file server on S3: its routes, its faults, its load, and whom it trusts. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { newId } from "@svc/contracts";
import {
  INTERNAL_TOKEN,
  type PrivateFileServer,
  startFileServer,
} from "@svc/test-kit/components/file-server";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { createBucket, type TestBucket } from "@svc/test-kit/storage/s3/bucket";
import { environmentFor } from "@svc/test-kit/storage/s3/environment";
import { startGateway } from "@svc/test-kit/storage/s3/gateway";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";

const TOKEN = { "x-svc-internal-token": INTERNAL_TOKEN };
const PUT_HEADERS = {
  ...TOKEN,
  "content-type": "text/x-test; charset=utf-8",
  "x-original-filename": encodeURIComponent("dir/ü 😀.txt"),
  "x-svc-namespace": "acme:user:u1",
};

let redis: PrivateRedis;
let tested: TestBucket;
let server: PrivateFileServer;
beforeEach(async () => {
  redis = await startRedis();
  tested = await createBucket(inject("s3Endpoint"));
  server = await startFileServer(redis.url, environmentFor(tested.options));
});
afterEach(async () => {
  await server.stop();
  await tested.destroy();
  await redis.stop();
});

const objectPath = (session = newId(), file = newId()) => `/sessions/${session}/objects/${file}`;
const call = (path: string, init: RequestInit = {}) => fetch(server.url + path, { headers: TOKEN, ...init });
const put = (path: string, body: Uint8Array<ArrayBuffer>) =>
  call(path, { method: "PUT", headers: PUT_HEADERS, body });
const errorOf = async (answer: Response) => ((await answer.json()) as { error: string }).error;
const bytesOf = async (answer: Response) => Buffer.from(await answer.arrayBuffer());

async function residentBytes(): Promise<number> {
  const status = await readFile(`/proc/${server.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

describe("the routes", () => {
  test("store, show, serve in pieces, list and delete an object", async () => {
    const session = newId();
    const path = objectPath(session);
    const bytes = randomBytes(9_000_001);
    const stored = await put(path, bytes);
    expect(stored.status).toBe(200);
    const { etag } = (await stored.json()) as { etag: string };
    expect((await put(path, bytes)).status).toBe(200);
    expect(await errorOf(await put(path, randomBytes(3)))).toBe("invalid_request");

    const whole = await call(path);
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      "content-type": PUT_HEADERS["content-type"],
      "content-length": "9000001",
      "x-original-filename": PUT_HEADERS["x-original-filename"],
      etag: `"${etag}"`,
    });
    expect((await bytesOf(whole)).equals(bytes)).toBe(true);
    const part = await call(path, { headers: { ...TOKEN, range: "bytes=8388600-8388620" } });
    expect([part.status, await bytesOf(part)]).toEqual([206, bytes.subarray(8_388_600, 8_388_621)]);
    const head = await call(path, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "9000001"]);
    expect((await call(path, { headers: { ...TOKEN, "if-none-match": `"${etag}"` } })).status).toBe(304);
    expect((await call(path, { headers: { ...TOKEN, "x-svc-namespace": "acme:user:u2" } })).status).toBe(404);
    expect(await (await call(`/sessions/${session}/objects`)).json()).toEqual([
      `${session}/${path.split("/").at(-1)}`,
    ]);

    expect((await call(path, { method: "DELETE" })).status).toBe(200);
    expect((await call(path, { method: "DELETE" })).status).toBe(404);
    expect((await call(path)).status).toBe(404);
    expect((await call(`/sessions/${session}/objects`)).status).toBe(404);
    await expect.poll(() => tested.keys()).toEqual([]);
  });

  test("delete an object whose bytes are damaged or gone", async () => {
    for (const damage of [
      (key: string) => tested.bucket.put(key, Buffer.from("x")),
      tested.bucket.delete.bind(tested.bucket),
    ]) {
      const path = objectPath();
      expect((await put(path, randomBytes(10))).status).toBe(200);
      const [content = ""] = (await tested.keys()).filter((key) => key.startsWith("content/"));
      await damage(content);
      const removed = (user: string) =>
        call(path, { method: "DELETE", headers: { ...TOKEN, "x-svc-namespace": `acme:user:${user}` } });
      expect((await removed("u2")).status).toBe(404);
      expect((await removed("u1")).status).toBe(200);
      await expect.poll(() => tested.keys()).toEqual([]);
    }
  });

  test("show pending files only after their commit", async () => {
    const session = newId();
    const files = [newId(), newId()];
    for (const file of files) {
      expect((await put(`/sessions/${session}/pending/${file}`, randomBytes(10))).status).toBe(200);
      expect((await call(objectPath(session, file))).status).toBe(404);
    }
    const commit = await call(`/sessions/${session}/commit`, {
      method: "POST",
      headers: { ...TOKEN, "content-type": "application/json" },
      body: JSON.stringify({ namespace: "acme:user:u1", read_only: true, files }),
    });
    expect(commit.status).toBe(200);
    for (const file of files) expect((await call(objectPath(session, file))).status).toBe(200);
  });
});

describe("faults", () => {
  test("a client that goes away, or a server that is killed, leaves nothing in the bucket", async () => {
    for (const end of ["client", "server"]) {
      const path = objectPath();
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1").on("error", () => undefined);
      const headers = Object.entries(PUT_HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(`PUT ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 90000000\r\n${headers.join("")}\r\n`);
      await new Promise((resolve) => socket.write(randomBytes(30_000_000), resolve));
      if (end === "server") await server.kill();
      socket.destroy();
      if (end === "server") await server.restart();
      expect((await call(path)).status).toBe(404);
      expect((await tested.keys()).filter((key) => !key.startsWith("probes/"))).toEqual([]);
    }
  });

  test("a storage that is away is named in the answers and in readiness, and comes back", async () => {
    const gateway = await startGateway(inject("s3Directory"));
    await server.stop();
    server = await startFileServer(redis.url, {
      ...environmentFor({ ...tested.options, endpoint: gateway.endpoint }),
    });
    const path = objectPath();
    expect((await put(path, randomBytes(10))).status).toBe(200);
    await gateway.kill();
    for (const answer of [
      await put(objectPath(), randomBytes(10)),
      await call(path),
      await call(objectPath()),
    ]) {
      expect([answer.status, await errorOf(answer)]).toEqual([503, "storage_unavailable"]);
    }
    await expect.poll(async () => (await call("/ready")).status).toBe(503);
    expect((await (await call("/ready")).json()) as unknown).toMatchObject({
      checks: { redis: "ok", storage: "failed" },
    });
    await gateway.start();
    await expect.poll(async () => (await call("/ready")).status).toBe(200);
    expect((await call(path)).status).toBe(200);
    await gateway.kill();
  });

  test("objects that nobody uses are removed at the end of their life", async () => {
    await server.stop();
    server = await startFileServer(redis.url, {
      ...environmentFor(tested.options),
      SESSION_CACHE_TTL: "4",
    });
    const [idle, used] = [objectPath(), objectPath()];
    await put(idle, randomBytes(10));
    await put(used, randomBytes(10));
    for (const end = Date.now() + 8000; Date.now() < end; await delay(200)) {
      expect((await call(`${used}/metadata`)).status).toBe(200);
    }
    expect((await call(idle)).status).toBe(404);
    expect((await tested.keys()).filter((key) => key.startsWith("content/"))).toHaveLength(1);
  });
});

describe("load", () => {
  /**
   * Content waits on disk; in memory are the parts that are being sent (64 MiB together), up to two gathered writes of 1 MiB
   * for each upload, and what their release to the garbage collector delays.
   */
  const GROWTH_BYTES = 300_000_000;
  /** 2 GB go through five processes, on a machine that may be busy. */
  const LOAD_MS = 300_000;

  test(
    "fifty uploads and downloads of 20 MB at once arrive whole and cost bounded memory",
    async () => {
      const bytes = randomBytes(20_000_000);
      expect((await put(objectPath(), bytes)).status).toBe(200);
      const before = await residentBytes();
      const peakDuring = async (work: () => Promise<unknown>): Promise<number> => {
        let peak = 0;
        const watch = setInterval(async () => {
          peak = Math.max(peak, await residentBytes().catch(() => 0));
        }, 50);
        await work().finally(() => clearInterval(watch));
        return peak - before;
      };
      const paths = Array.from({ length: 50 }, () => objectPath());
      const uploads = await peakDuring(async () => {
        const stored = await Promise.all(paths.map((path) => put(path, bytes)));
        expect(stored.map(({ status }) => status)).toEqual(paths.map(() => 200));
      });
      const downloads = await peakDuring(() =>
        Promise.all(
          paths.map(async (path) => {
            const answer = await call(path);
            const body = await bytesOf(answer);
            expect([answer.status, body.equals(bytes)]).toEqual([200, true]);
          }),
        ),
      );
      console.log(`growth in MB: uploads ${uploads / 1e6}, downloads ${downloads / 1e6}`);
      expect(uploads).toBeLessThan(GROWTH_BYTES);
      expect(downloads).toBeLessThan(GROWTH_BYTES);
    },
    LOAD_MS,
  );

  test("readers that do not read cost no memory and do not keep others from reading", async () => {
    const path = objectPath();
    const bytes = randomBytes(60_000_000);
    await put(path, bytes);
    const before = await residentBytes();
    const sockets = Array.from({ length: 60 }, () => {
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1").on("error", () => undefined);
      socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nx-svc-internal-token: ${INTERNAL_TOKEN}\r\n\r\n`);
      return socket.pause();
    });
    expect((await bytesOf(await call(path))).equals(bytes)).toBe(true);
    expect((await residentBytes()) - before).toBeLessThan(GROWTH_BYTES);
    for (const socket of sockets) socket.destroy();
  });
});

describe("TLS", () => {
  test("a server is used when its certificate is trusted, and never otherwise", async () => {
    const directory = inject("s3Directory");
    const [key, certificate] = [join(directory, "tls.pem"), join(directory, "tls.crt")];
    execFileSync(
      "openssl",
      [
        ...[
          "req",
          "-x509",
          "-newkey",
          "ec",
          "-pkeyopt",
          "ec_paramgen_curve:prime256v1",
          "-nodes",
          "-days",
          "2",
        ],
        ...["-subj", "/CN=tests", "-addext", "subjectAltName=IP:127.0.0.1"],
        ...["-keyout", key, "-out", certificate],
      ],
      { stdio: "ignore" },
    );
    execFileSync("sh", ["-c", 'cat "$1" >> "$0"', key, certificate]);
    const gateway = await startGateway(directory, { certificate: key });
    const environment = environmentFor({ ...tested.options, endpoint: gateway.endpoint });
    for (const [trusted, status] of [
      [{}, 503],
      [{ NODE_EXTRA_CA_CERTS: certificate }, 200],
    ] as const) {
      await server.stop();
      server = await startFileServer(redis.url, { ...environment, ...trusted });
      expect((await put(objectPath(), randomBytes(10))).status).toBe(status);
      expect((await call("/ready")).status).toBe(status);
    }
    await gateway.kill();
  });
});
