import { createHash, randomBytes } from "node:crypto";
import { truncate } from "node:fs/promises";
import { DELETED_RECORD, newId, objectRecordKey } from "@svc/contracts";
import {
  INTERNAL_TOKEN,
  type PrivateFileServer,
  startFileServer,
} from "@svc/test-kit/components/file-server";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const OWN = "acme:user:u1";
const TOKEN = { "x-svc-internal-token": INTERNAL_TOKEN };
const PUT_HEADERS = {
  ...TOKEN,
  "content-type": "text/csv; charset=utf-8",
  "x-original-filename": "d%C3%A4ta%2F1.csv",
  "x-svc-namespace": OWN,
};

let redisServer: PrivateRedis;
let redis: Redis;
let server: PrivateFileServer;

beforeAll(async () => {
  redisServer = await startRedis();
  redis = new Redis(redisServer.socket);
  server = await startFileServer(redisServer.url, {
    MAX_FILE_SIZE: "1mb",
    SVC_SESSION_STATE_MAX_BYTES: "2mb",
    EGRESS_GATEWAY_MAX_FILE_BYTES: "1mb",
  });
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
  await redisServer.stop();
});

const call = (method: string, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(server.url + path, { method, headers: TOKEN, ...init });
const objectPath = (session = newId(), file = newId()) => `/sessions/${session}/objects/${file}`;

async function putObject(
  body: Uint8Array<ArrayBuffer> | string,
  headers: Record<string, string> = {},
): Promise<string> {
  const path = objectPath();
  const answer = await call("PUT", path, { body, headers: { ...PUT_HEADERS, ...headers } });
  expect(answer.status).toBe(200);
  return path;
}

async function errorOf(answer: Response): Promise<[number, string]> {
  const body = (await answer.json()) as { error: string; request_id: string };
  expect(body.request_id).toBe(answer.headers.get("x-request-id"));
  return [answer.status, body.error];
}

describe("the operational routes", () => {
  test("are open and say what works", async () => {
    expect(await (await fetch(`${server.url}/health`)).json()).toEqual({ status: "ok" });
    const ready = await fetch(`${server.url}/ready`);
    expect(ready.status).toBe(200);
    expect(await ready.json()).toEqual({ status: "ready", checks: { redis: "ok", storage: "ok" } });
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain('svc_http_requests_total{method="GET",route="/ready",status="200"}');
    expect(metrics).toContain("svc_http_request_duration_seconds_bucket");
  });
});

describe("every other route", () => {
  const routes = [
    ["PUT", objectPath()],
    ["GET", objectPath()],
    ["HEAD", objectPath()],
    ["DELETE", objectPath()],
    ["GET", `${objectPath()}/metadata`],
    ["GET", `${objectPath()}/record`],
    ["GET", `/sessions/${newId()}/objects`],
    ["PUT", `/sessions/${newId()}/pending/${newId()}`],
    ["DELETE", `/sessions/${newId()}/pending`],
    ["POST", `/sessions/${newId()}/commit`],
  ] as const;

  test.each(routes)("%s %s needs the internal token", async (method, path) => {
    for (const headers of [
      {},
      { "x-svc-internal-token": "" },
      { "x-svc-internal-token": `${INTERNAL_TOKEN}x` },
    ]) {
      const answer = await call(method, path, { headers });
      expect(answer.status).toBe(401);
      if (method !== "HEAD") expect((await errorOf(answer))[1]).toBe("unauthorized");
    }
  });

  test.each(routes)("%s %s takes whole ids only", async (method, path) => {
    const body =
      method === "POST" ? JSON.stringify({ namespace: OWN, read_only: false, files: [newId()] }) : null;
    const json = { ...TOKEN, ...(body === null ? {} : { "content-type": "application/json" }) };
    const headers = method === "PUT" ? PUT_HEADERS : json;
    const broken = path.replace(/[A-Za-z0-9_-]{21}/, (id) => id.slice(1));
    const answer = await call(method, broken, { headers, body });
    expect(answer.status).toBe(400);
    if (method !== "HEAD") expect((await errorOf(answer))[1]).toBe("invalid_id");
  });
});

describe("a stored object", () => {
  test("is answered with its record and comes back with its headers", async () => {
    const bytes = randomBytes(300_000);
    const path = objectPath();
    const put = await call("PUT", path, { body: bytes, headers: { ...PUT_HEADERS, "x-read-only": "true" } });
    const etag = createHash("sha256").update(bytes).digest("hex");
    const [, , session, , file] = path.split("/");
    const record = (await put.json()) as { lastModified: string };
    expect(record).toEqual({
      status: "success",
      name: "däta/1.csv",
      filename: "däta/1.csv",
      id: file,
      fileId: file,
      storage_session_id: session,
      size: 300_000,
      lastModified: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      etag,
      contentType: "text/csv; charset=utf-8",
      metadata: { "content-type": "text/csv; charset=utf-8", "original-filename": "däta/1.csv" },
    });
    for (const method of ["GET", "HEAD"]) {
      const answer = await call(method, path);
      expect(answer.status).toBe(200);
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        "content-type": "text/csv; charset=utf-8",
        "content-length": "300000",
        etag: `"${etag}"`,
        "last-modified": new Date(record.lastModified).toUTCString(),
        "accept-ranges": "bytes",
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-cache",
        "x-read-only": "true",
        "content-disposition": "attachment; filename=\"d_ta_1.csv\"; filename*=UTF-8''d%C3%A4ta%2F1.csv",
        "x-original-filename": "d%C3%A4ta%2F1.csv",
      });
      expect(Buffer.from(await answer.arrayBuffer())).toEqual(method === "GET" ? bytes : Buffer.alloc(0));
    }
    const metadata = await call("GET", `${path}/metadata`);
    expect(await metadata.json()).toEqual({
      lastModified: record.lastModified,
      size: 300_000,
      etag,
      contentType: "text/csv; charset=utf-8",
      name: `${session}/${file}`,
      originalFilename: "däta/1.csv",
      id: file,
      storage_session_id: session,
      readOnly: true,
    });
  });

  test.each([
    "application/json",
    "multipart/form-data; boundary=x",
    "text/plain",
    "application/x-www-form-urlencoded",
  ])("of type %s is stored raw", async (type) => {
    const path = await putObject("{not json", { "content-type": type });
    const answer = await call("GET", path);
    expect(answer.headers.get("content-type")).toBe(type);
    expect(await answer.text()).toBe("{not json");
  });

  test("may be empty", async () => {
    const path = await putObject("");
    const answer = await call("GET", path);
    expect(answer.headers.get("content-length")).toBe("0");
    expect(await answer.text()).toBe("");
    expect((await call("GET", path, { headers: { ...TOKEN, range: "bytes=0-" } })).status).toBe(416);
  });

  test("is served in ranges and with conditions", async () => {
    const path = await putObject("0123456789");
    const get = (headers: Record<string, string>) => call("GET", path, { headers: { ...TOKEN, ...headers } });
    const part = await get({ range: "bytes=2-4" });
    expect([part.status, part.headers.get("content-range"), await part.text()]).toEqual([
      206,
      "bytes 2-4/10",
      "234",
    ]);
    expect(part.headers.get("content-length")).toBe("3");
    const several = await get({ range: "bytes=0-1,4-5" });
    expect([several.status, await several.text()]).toEqual([200, "0123456789"]);
    const behind = await get({ range: "bytes=10-" });
    expect(behind.headers.get("content-range")).toBe("bytes */10");
    expect(await errorOf(behind)).toEqual([416, "range_not_satisfiable"]);
    const etag = several.headers.get("etag") ?? "";
    const unchanged = await get({ "if-none-match": etag });
    expect([unchanged.status, unchanged.headers.get("etag"), await unchanged.text()]).toEqual([
      304,
      etag,
      "",
    ]);
    expect((await get({ "if-modified-since": several.headers.get("last-modified") ?? "" })).status).toBe(304);
    expect((await get({ range: "bytes=0-1", "if-range": etag })).status).toBe(206);
    expect((await get({ range: "bytes=0-1", "if-range": '"other"' })).status).toBe(200);
  });

  test("is never overwritten", async () => {
    const path = await putObject("first");
    const again = await call("PUT", path, { body: "second", headers: PUT_HEADERS });
    expect(await errorOf(again)).toEqual([400, "invalid_request"]);
    expect(await (await call("GET", path)).text()).toBe("first");
  });

  test("exists for its own namespace only, and foreign looks like absent", async () => {
    const path = await putObject("secret");
    const foreign = { ...TOKEN, "x-svc-namespace": "acme:user:u2" };
    const absent = await call("GET", objectPath(), { headers: foreign });
    const shape = ({ request_id: _id, ...body }: Record<string, unknown>) => body;
    const expected = shape((await absent.json()) as Record<string, unknown>);
    for (const [method, suffix] of [
      ["GET", ""],
      ["GET", "/metadata"],
      ["GET", "/record"],
      ["DELETE", ""],
    ] as const) {
      const answer = await call(method, path + suffix, { headers: foreign });
      expect(answer.status).toBe(404);
      expect(shape((await answer.json()) as Record<string, unknown>)).toEqual(expected);
    }
    expect((await call("HEAD", path, { headers: foreign })).status).toBe(404);
    expect((await call("GET", path.slice(0, -22), { headers: foreign })).status).toBe(404);
    const own = await call("GET", path, { headers: { ...TOKEN, "x-svc-namespace": OWN } });
    expect(await own.text()).toBe("secret");
  });

  test.each(["content-type", "x-original-filename", "x-svc-namespace"])(
    "without %s is refused",
    async (name) => {
      const headers = Object.fromEntries(Object.entries(PUT_HEADERS).filter(([key]) => key !== name));
      const answer = await call("PUT", objectPath(), { body: randomBytes(10), headers });
      expect(await errorOf(answer)).toEqual([400, "missing_headers"]);
    },
  );

  test("of more bytes than any limit allows is refused and leaves nothing", async () => {
    const before = await server.storedFiles();
    const body = randomBytes(2 * 2 ** 20 + 1);
    const path = objectPath();
    expect(await errorOf(await call("PUT", path, { body, headers: PUT_HEADERS }))).toEqual([
      413,
      "file_too_large",
    ]);
    expect(await server.storedFiles()).toEqual(before);
    expect((await call("PUT", path, { body: body.subarray(1), headers: PUT_HEADERS })).status).toBe(200);
  });

  test("is gone when deleted, with its cached record, and cannot be cached again", async () => {
    const path = await putObject("x");
    const [, , session = "", , file = ""] = path.split("/");
    const key = objectRecordKey(session, file);
    expect(JSON.parse((await redis.get(key)) ?? "")).toMatchObject({ id: file, namespace: OWN });
    const answer = await call("DELETE", path);
    expect(await answer.json()).toEqual({
      message: "File deleted successfully",
      session_id: session,
      fileId: file,
    });
    expect(await errorOf(await call("DELETE", path))).toEqual([404, "file_not_found"]);
    expect(await errorOf(await call("GET", path))).toEqual([404, "file_not_found"]);
    expect(await errorOf(await call("GET", `${path}/metadata`))).toEqual([404, "file_not_found"]);
    expect(await redis.get(key)).toBe(DELETED_RECORD);
  });

  test("whose bytes were cut is no object, and says nothing about why", async () => {
    const path = await putObject(randomBytes(500_000));
    const [, , session = "", , file = ""] = path.split("/");
    await truncate(`${server.directory}/sessions/${session}/${file}`, 400_000);
    for (const suffix of ["", "/metadata"]) {
      const answer = await call("GET", path + suffix);
      expect(await errorOf(answer)).toEqual([500, "internal_error"]);
    }
  });
});

describe("the cached record", () => {
  test("is written on PUT, renewed by use, and written again when Redis lost it", async () => {
    const path = await putObject("x");
    const [, , session = "", , file = ""] = path.split("/");
    const key = objectRecordKey(session, file);
    const uses = ["", "/metadata", "/record"].map((suffix) => () => call("GET", path + suffix));
    for (const use of [...uses, () => call("HEAD", path)]) {
      await redis.expire(key, 10);
      await (await use()).arrayBuffer();
      expect(await redis.ttl(key)).toBeGreaterThan(86_000);
      await redis.del(key);
      await (await use()).arrayBuffer();
      expect(JSON.parse((await redis.get(key)) ?? "null")).toEqual(
        await (await call("GET", `${path}/record`)).json(),
      );
    }
  });
});

describe("a listing", () => {
  test("shows the objects of the session in each detail", async () => {
    const session = newId();
    const file = newId();
    const path = objectPath(session, file);
    const put = await call("PUT", path, {
      body: "12345",
      headers: { ...PUT_HEADERS, "x-read-only": "true" },
    });
    const { etag, lastModified } = (await put.json()) as Record<string, string>;
    const list = async (query: string) => (await call("GET", `/sessions/${session}/objects${query}`)).json();
    const name = `${session}/${file}`;
    const contentType = "text/csv; charset=utf-8";
    expect(await list("")).toEqual([name]);
    expect(await list("?detail=simple")).toEqual([name]);
    expect(await list("?detail=summary")).toEqual([{ name, size: 5, lastModified, etag }]);
    expect(await list("?detail=full")).toEqual([
      {
        name,
        size: 5,
        lastModified,
        etag,
        id: file,
        storage_session_id: session,
        resource_id: "u1",
        contentType,
        metadata: { "content-type": contentType, "original-filename": "däta/1.csv" },
      },
    ]);
    expect(await list("?detail=normalized")).toEqual([
      {
        id: file,
        name: "däta/1.csv",
        storage_session_id: session,
        size: 5,
        contentType,
        lastModified,
        read_only: true,
      },
    ]);
    expect(await list("?detail=Simple")).toMatchObject({ error: "invalid_request" });
  });

  test("of an unknown or emptied session is 404", async () => {
    expect(await errorOf(await call("GET", `/sessions/${newId()}/objects`))).toEqual([404, "file_not_found"]);
    const path = await putObject("x");
    await call("DELETE", path);
    expect(await errorOf(await call("GET", path.slice(0, -22)))).toEqual([404, "file_not_found"]);
  });
});

describe("pending objects", () => {
  const stage = (session: string, file: string, body: string) =>
    call("PUT", `/sessions/${session}/pending/${file}`, { body, headers: { ...PUT_HEADERS } });
  const commit = (session: string, body: unknown) =>
    call("POST", `/sessions/${session}/commit`, {
      body: JSON.stringify(body),
      headers: { ...TOKEN, "content-type": "application/json" },
    });

  test("become the objects of their session by one commit", async () => {
    const [session, one, two] = [newId(), newId(), newId()];
    expect(await (await stage(session, one, "one")).json()).toMatchObject({ size: 3 });
    await stage(session, two, "two");
    expect((await call("GET", objectPath(session, one))).status).toBe(404);
    expect((await call("GET", `/sessions/${session}/objects`)).status).toBe(404);
    const answer = await commit(session, { namespace: "acme:agent:a", read_only: true, files: [two, one] });
    const { files } = (await answer.json()) as { files: { id: string }[] };
    expect(files.map(({ id }) => id)).toEqual([two, one]);
    const got = await call("GET", objectPath(session, one), {
      headers: { ...TOKEN, "x-svc-namespace": "acme:agent:a" },
    });
    expect([got.headers.get("x-read-only"), await got.text()]).toEqual(["true", "one"]);
    expect(await redis.get(objectRecordKey(session, two))).toContain('"namespace":"acme:agent:a"');
  });

  test.each([
    [{ namespace: "acme", read_only: false, files: [newId()] }],
    [{ namespace: OWN, read_only: false, files: [] }],
    [{ namespace: OWN, read_only: false, files: ["x"] }],
    [{ namespace: OWN, read_only: false, files: ["a".repeat(21), "a".repeat(21)] }],
    [{ namespace: OWN, files: [newId()] }],
    [{}],
  ])("are not committed by %j", async (body) => {
    const session = newId();
    await stage(session, newId(), "x");
    expect(await errorOf(await commit(session, body))).toEqual([400, "invalid_request"]);
    expect((await call("DELETE", `/sessions/${session}/pending`)).status).toBe(200);
  });

  test("that were discarded cannot be committed", async () => {
    const [session, file] = [newId(), newId()];
    await stage(session, file, "x");
    expect((await call("DELETE", `/sessions/${session}/pending`)).status).toBe(200);
    const answer = await commit(session, { namespace: OWN, read_only: false, files: [file] });
    expect(await errorOf(answer)).toEqual([404, "file_not_found"]);
  });
});
