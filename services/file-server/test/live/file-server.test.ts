import { createHash, randomBytes } from "node:crypto";
import { readFile, truncate, writeFile } from "node:fs/promises";
import { DELETED_RECORD, newId, objectRecordKey } from "@svc/contracts";
import { INTERNAL_TOKEN } from "@svc/test-kit/components/file-server";
import { describe, expect, test } from "vitest";
import {
  call,
  errorOf,
  OWN,
  objectPath,
  PUT_HEADERS,
  putObject,
  redis,
  server,
  TOKEN,
} from "../support/server.ts";

describe("the operational routes", () => {
  test("are open and say what works", async () => {
    expect(await (await fetch(`${server.url}/health`)).json()).toEqual({ status: "ok" });
    const ready = await fetch(`${server.url}/ready`);
    expect(ready.status).toBe(200);
    const checks = { redis: "ok", clock: "ok", storage: "ok", descriptors: "ok", running: "ok" };
    expect(await ready.json()).toEqual({ status: "ready", checks });
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

  test("whose bytes were cut is not an object, and says nothing about why", async () => {
    const path = await putObject(randomBytes(500_000));
    const [, , session = "", , file = ""] = path.split("/");
    await truncate(`${server.directory}/sessions/${session}/${file}`, 400_000);
    for (const suffix of ["", "/metadata"]) {
      const answer = await call("GET", path + suffix);
      expect(await errorOf(answer)).toEqual([500, "internal_error"]);
    }
  });

  test("whose bytes are damaged is deleted by its owner alone, while its record can be read", async () => {
    const own = { headers: { ...TOKEN, "x-svc-namespace": OWN } };
    const damaged = async (damage: (whole: Buffer) => Buffer) => {
      const path = await putObject(randomBytes(1000));
      const stored = `${server.directory}${path.replace("/objects", "")}`;
      await writeFile(stored, damage(await readFile(stored)));
      return { path, stored };
    };
    const { path, stored } = await damaged((whole) => whole.subarray(10));
    const other = { headers: { ...TOKEN, "x-svc-namespace": "acme:user:u2" } };
    expect(await errorOf(await call("DELETE", path, other))).toEqual([404, "file_not_found"]);
    expect(await server.storedFiles()).toContain(stored);
    expect((await call("DELETE", path, own)).status).toBe(200);
    expect(await errorOf(await call("GET", path, own))).toEqual([404, "file_not_found"]);

    const cut = await damaged((whole) => whole.subarray(0, 900));
    expect(await errorOf(await call("DELETE", cut.path, own))).toEqual([404, "file_not_found"]);
    expect(await server.storedFiles()).toContain(cut.stored);
    expect((await call("DELETE", cut.path)).status).toBe(200);
    expect(await server.storedFiles()).not.toContain(cut.stored);
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
