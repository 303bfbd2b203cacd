import { createHash, randomBytes } from "node:crypto";
import { type ErrorCode, newId, objectRecordKey, type UploadedFile } from "@svc/contracts";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type FileApi,
  FORM_TYPE,
  type FormPart,
  formBytes,
  startFileApi,
  USER_HEADER,
} from "../../support/file-api.ts";

const LIMIT = 1_000_000;
let api: FileApi;
beforeAll(async () => {
  api = await startFileApi({ MAX_FILE_SIZE: String(LIMIT), UPLOAD_MAX_FILES: "5" });
});
afterAll(() => api.stop());

const file = (filename: string, body: Uint8Array | string = filename, type = "text/plain"): FormPart => ({
  filename,
  body,
  type,
});
const field = (name: string, value: string): FormPart => ({ name, value });

function post(
  route: string,
  parts: readonly FormPart[],
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${api.url}/v1/${route}`, {
    method: "POST",
    body: formBytes(parts),
    headers: { "content-type": FORM_TYPE, ...headers },
  });
}

interface Uploaded {
  message: string;
  storage_session_id: string;
  files: UploadedFile[];
}

async function upload(...parts: FormPart[]): Promise<Uploaded> {
  const answer = await post("upload", parts);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Uploaded;
}

const call = (path: string, init: RequestInit = {}) => fetch(`${api.url}/v1/${path}`, init);
const as = (user: string, init: RequestInit = {}) => ({
  ...init,
  headers: { ...init.headers, [USER_HEADER]: user },
});

async function errorOf(answer: Response): Promise<[number, ErrorCode]> {
  const body = (await answer.json()) as { error: ErrorCode; message: string; request_id: string };
  expect(body.message).toMatch(/^\S.*\.$/s);
  expect(body.request_id).toBe(answer.headers.get("x-request-id"));
  return [answer.status, body.error];
}

describe.each(["upload", "upload/batch"])("POST /v1/%s", (route) => {
  test("stores files with exact records, and they can be used at once", async () => {
    const bytes = randomBytes(400_000);
    const answer = await post(route, [
      file("data/ünï.bin", bytes, "application/x-test; a=b"),
      file("empty", ""),
    ]);
    expect(answer.status).toBe(200);
    const body = (await answer.json()) as Uploaded;
    const batch = route === "upload" ? {} : { succeeded: 2, failed: 0 };
    expect(body).toEqual({
      message: "success",
      storage_session_id: expect.any(String),
      files: expect.any(Array),
      ...batch,
    });
    const [first, second] = body.files as [UploadedFile, UploadedFile];
    expect(first).toEqual({
      status: "success",
      name: "data/ünï.bin",
      filename: "data/ünï.bin",
      id: expect.stringMatching(/^[A-Za-z0-9_-]{21}$/),
      fileId: first.id,
      storage_session_id: body.storage_session_id,
      size: bytes.length,
      etag: createHash("sha256").update(bytes).digest("hex"),
      lastModified: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      contentType: "application/x-test; a=b",
      metadata: { "content-type": "application/x-test; a=b", "original-filename": "data/ünï.bin" },
    });
    expect(second).toMatchObject({ name: "empty", size: 0 });
    const download = await call(`download/${body.storage_session_id}/${first.id}`);
    expect(Buffer.from(await download.arrayBuffer())).toEqual(bytes);
  });

  test("takes fields before, between and behind the files", async () => {
    const kind = [
      field("kind", "skill"),
      field("id", "s1"),
      field("version", "2"),
      field("read_only", "True"),
      field("x", "y"),
    ];
    for (const parts of [
      [...kind, file("a")],
      [file("a"), ...kind],
      [...kind.slice(0, 2), file("a"), ...kind.slice(2)],
    ]) {
      const body = (await (await post(route, parts)).json()) as Uploaded;
      const path = `download/${body.storage_session_id}/${body.files[0]?.id}`;
      expect((await call(path)).status).toBe(404);
      const answer = await call(`${path}?kind=skill&id=s1&version=2`);
      expect(answer.headers.get("x-read-only")).toBe("true");
      expect(await answer.text()).toBe("a");
      expect((await call(`${path}?kind=skill&id=s1&version=2`, as("colleague"))).status).toBe(200);
    }
  });

  test("stores a file without type, with a broken or with an overlong one as bytes", async () => {
    const parts = [
      { filename: "a", body: "x" },
      file("b", "x", "nonsense"),
      file("c", "x", `a/${"b".repeat(300)}`),
    ];
    const body = (await (await post(route, parts)).json()) as Uploaded;
    expect(body.files.map(({ contentType }) => contentType)).toEqual(
      new Array(3).fill("application/octet-stream"),
    );
  });

  test.each([
    ["an unknown kind", [field("kind", "group")], "kind"],
    ["an agent without id", [field("kind", "agent")], "id"],
    ["a skill without version", [field("kind", "skill"), field("id", "s")], "version"],
    [
      "a version that is no number",
      [field("kind", "skill"), field("id", "s"), field("version", "x")],
      "version",
    ],
    ["a version for an agent", [field("kind", "agent"), field("id", "s"), field("version", "1")], "version"],
    ["a field given twice", [field("kind", "user"), field("kind", "agent")], "kind"],
    ["an endless field", [field("id", "x".repeat(100_000))], "id"],
  ])("refuses %s, before and behind the file, and keeps nothing", async (_name, fields, path) => {
    const before = await api.fileServer.storedFiles();
    for (const parts of [
      [...fields, file("a")],
      [file("a"), ...fields],
    ]) {
      const answer = await post(route, parts);
      const body = (await answer.clone().json()) as { details: { path: string }[] };
      expect(await errorOf(answer)).toEqual([400, "invalid_request"]);
      expect(body.details.map((detail) => detail.path)).toEqual([path]);
    }
    expect(await api.fileServer.storedFiles()).toEqual(before);
  });

  test.each([
    ["no file", formBytes([field("kind", "user")]), FORM_TYPE, "no_files"],
    ["an empty form", formBytes([]), FORM_TYPE, "no_files"],
    ["JSON", "{}", "application/json", "invalid_content_type"],
    ["no boundary", formBytes([file("a")]), "multipart/form-data", "invalid_multipart"],
    ["another boundary", formBytes([file("a")]), "multipart/form-data; boundary=other", "invalid_multipart"],
    [
      "a form that ends early",
      formBytes([file("a"), file("b")]).subarray(0, -10),
      FORM_TYPE,
      "invalid_multipart",
    ],
    ["nothing", "", FORM_TYPE, "invalid_multipart"],
  ])("refuses %s and keeps nothing", async (_name, body, type, code) => {
    const before = await api.fileServer.storedFiles();
    const answer = await call(route, { method: "POST", body, headers: { "content-type": type } });
    expect(await errorOf(answer)).toEqual([400, code]);
    expect(await api.fileServer.storedFiles()).toEqual(before);
  });

  test("refuses other methods by name", async () => {
    const answer = await call(route);
    expect(answer.headers.get("allow")).toBe("POST");
    expect(await errorOf(answer)).toEqual([405, "method_not_allowed"]);
  });
});

describe("POST /v1/upload with one bad file", () => {
  test.each([
    ["too large", file("big", randomBytes(LIMIT + 1)), 413, "file_too_large"],
    ["named outside", file("../a"), 400, "invalid_file_name"],
    ["named absolutely", file("/etc/passwd"), 400, "invalid_file_name"],
    ["without name", file(""), 400, "invalid_file_name"],
    ["named too deep", file(`${"a/".repeat(10)}b`), 400, "invalid_file_name"],
    ["named with a line break", file("a%0Ab"), 400, "invalid_file_name"],
  ])("%s refuses the request and keeps nothing", async (_name, bad, status, code) => {
    const before = await api.fileServer.storedFiles();
    expect(await errorOf(await post("upload", [file("good"), bad, file("later")]))).toEqual([status, code]);
    expect(await api.fileServer.storedFiles()).toEqual(before);
  });

  test("a file of exactly the limit is fine, and five files are, but not six", async () => {
    await upload(file("a", randomBytes(LIMIT)));
    const five = ["a", "b", "c", "d", "e"].map((name) => file(name));
    await upload(...five);
    expect(await errorOf(await post("upload", [...five, file("f")]))).toEqual([400, "too_many_files"]);
  });

  test("a client that goes on sending forty megabytes reads the refusal", async () => {
    const parts = [file("big", randomBytes(40_000_000))];
    expect(await errorOf(await post("upload", parts))).toEqual([413, "file_too_large"]);
  });
});

describe("POST /v1/upload/batch with bad files", () => {
  test("keeps the good ones and reports the others in order", async () => {
    const answer = await post("upload/batch", [
      file("good"),
      file("big", randomBytes(LIMIT + 1)),
      file("../bad"),
      file("last"),
    ]);
    expect(answer.status).toBe(200);
    const body = (await answer.json()) as Uploaded;
    expect(body).toMatchObject({ message: "partial_success", succeeded: 2, failed: 2 });
    expect(body.files).toMatchObject([
      { status: "success", filename: "good" },
      {
        status: "error",
        filename: "big",
        error: "file_too_large",
        message: expect.stringMatching(/1000000 bytes/),
      },
      { status: "error", filename: "../bad", error: "invalid_file_name" },
      { status: "success", filename: "last" },
    ]);
    const list = await call(`files/${body.storage_session_id}`);
    expect(await list.json()).toHaveLength(2);
  });

  test("of which none can be stored is an error, 413 when all are too large", async () => {
    const before = await api.fileServer.storedFiles();
    const big = file("big", randomBytes(LIMIT + 1));
    for (const [parts, status] of [
      [[big, big], 413],
      [[big, file("..")], 400],
    ] as const) {
      const answer = await post("upload/batch", parts);
      expect(answer.status).toBe(status);
      expect(await answer.json()).toEqual({
        message: "error",
        error: "upload_failed",
        request_id: answer.headers.get("x-request-id"),
        storage_session_id: expect.any(String),
        files: expect.any(Array),
        succeeded: 0,
        failed: 2,
        details: expect.stringMatching(/^No file could be stored/),
      });
    }
    expect(await api.fileServer.storedFiles()).toEqual(before);
  });

  test("over the number of files keeps the first and says so", async () => {
    const answer = await post(
      "upload/batch",
      Array.from({ length: 7 }, (_unused, index) => file(`f${index}`)),
    );
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      message: "partial_success",
      succeeded: 5,
      failed: 2,
      filesLimitReached: true,
      maxFiles: 5,
      files: [{}, {}, {}, {}, {}, { filename: "f5", error: "too_many_files" }, { filename: "f6" }],
    });
  });
});

describe("a download", () => {
  test("has the listed headers and no others, for GET and HEAD", async () => {
    const { files } = await upload(file("a b.txt", "0123456789"), field("read_only", "true"));
    const { id, storage_session_id, etag, lastModified } = files[0] as UploadedFile;
    for (const method of ["GET", "HEAD"]) {
      const answer = await call(`download/${storage_session_id}/${id}`, { method });
      const {
        date,
        connection,
        "keep-alive": _,
        "x-request-id": requestId,
        ...headers
      } = Object.fromEntries(answer.headers);
      expect([date, connection, requestId].every((value) => value !== undefined)).toBe(true);
      expect(headers).toEqual({
        "content-type": "text/plain",
        "content-length": "10",
        etag: `"${etag}"`,
        "last-modified": new Date(lastModified).toUTCString(),
        "accept-ranges": "bytes",
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-cache",
        "x-read-only": "true",
        "content-disposition": "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt",
      });
      expect(await answer.text()).toBe(method === "GET" ? "0123456789" : "");
    }
  });

  test("knows ranges and conditions", async () => {
    const { files } = await upload(file("a.txt", "0123456789"));
    const { id, storage_session_id, etag } = files[0] as UploadedFile;
    const get = (headers: Record<string, string>) =>
      call(`download/${storage_session_id}/${id}`, { headers });
    const part = await get({ range: "bytes=-4" });
    expect([part.status, part.headers.get("content-range"), await part.text()]).toEqual([
      206,
      "bytes 6-9/10",
      "6789",
    ]);
    expect((await get({ range: "bytes=0-0,2-3" })).status).toBe(200);
    expect((await get({ range: "bytes=0-1", "if-range": `"${etag}"` })).status).toBe(206);
    expect((await get({ "if-none-match": `"${etag}"` })).status).toBe(304);
    expect((await get({ "if-modified-since": new Date().toUTCString() })).status).toBe(304);
    const behind = await get({ range: "bytes=99-" });
    expect(behind.headers.get("content-range")).toBe("bytes */10");
    expect(await errorOf(behind)).toEqual([416, "range_not_satisfiable"]);
  });
});

describe("metadata, listing, deletion", () => {
  test("metadata has its nine fields", async () => {
    const { files, storage_session_id } = await upload(file("a.txt", "12"));
    const { id, etag, lastModified } = files[0] as UploadedFile;
    const answer = await call(`sessions/${storage_session_id}/objects/${id}`);
    expect(await answer.json()).toEqual({
      lastModified,
      size: 2,
      etag,
      contentType: "text/plain",
      name: `${storage_session_id}/${id}`,
      originalFilename: "a.txt",
      id,
      storage_session_id,
      readOnly: false,
    });
  });

  test("a listing knows four details and refuses others", async () => {
    const { files, storage_session_id } = await upload(
      file("a.txt", "12"),
      field("kind", "agent"),
      field("id", "a1"),
    );
    const { id, etag, lastModified } = files[0] as UploadedFile;
    const list = async (detail: string) =>
      (await call(`files/${storage_session_id}?kind=agent&id=a1${detail}`)).json();
    const name = `${storage_session_id}/${id}`;
    const summary = { name, size: 2, lastModified, etag };
    expect(await list("")).toEqual([name]);
    expect(await list("&detail=simple")).toEqual([name]);
    expect(await list("&detail=summary")).toEqual([summary]);
    expect(await list("&detail=full")).toEqual([
      {
        ...summary,
        id,
        storage_session_id,
        resource_id: "a1",
        contentType: "text/plain",
        metadata: { "content-type": "text/plain", "original-filename": "a.txt" },
      },
    ]);
    expect(await list("&detail=normalized")).toEqual([
      { id, name: "a.txt", storage_session_id, size: 2, contentType: "text/plain", lastModified },
    ]);
    expect(await list("&detail=FULL")).toMatchObject({ error: "invalid_request" });
    expect(await list("&detail=full&detail=full")).toMatchObject({ error: "invalid_request" });
  });

  test("a deleted file is gone for every route and for references", async () => {
    const { files, storage_session_id } = await upload(file("a.txt"));
    const { id } = files[0] as UploadedFile;
    const ref = { id, storage_session_id };
    expect((await api.lookupRecords([ref], "r"))[0]).toMatchObject({ id, namespace: "acme:user:u1" });
    const answer = await call(`files/${storage_session_id}/${id}`, { method: "DELETE" });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      message: "File deleted successfully",
      session_id: storage_session_id,
      fileId: id,
    });
    expect(await errorOf(await call(`files/${storage_session_id}/${id}`, { method: "DELETE" }))).toEqual([
      404,
      "file_not_found",
    ]);
    expect((await call(`download/${storage_session_id}/${id}`)).status).toBe(404);
    expect((await call(`sessions/${storage_session_id}/objects/${id}`)).status).toBe(404);
    expect((await call(`files/${storage_session_id}`)).status).toBe(404);
    expect(await api.lookupRecords([ref], "r")).toEqual([undefined]);
  });
});

describe("all routes with a file in their path", () => {
  const routes = [
    ["GET", "download/:s/:f"],
    ["HEAD", "download/:s/:f"],
    ["GET", "sessions/:s/objects/:f"],
    ["GET", "files/:s"],
    ["DELETE", "files/:s/:f"],
  ] as const;
  const at = (route: string, session: string, id: string) => route.replace(":s", session).replace(":f", id);

  test.each(routes)("%s %s: foreign and absent look and take the same", async (method, route) => {
    const { files, storage_session_id } = await upload(file("a.txt"));
    const { id } = files[0] as UploadedFile;
    const causes = [
      [storage_session_id, id, "?kind=agent&id=a1"],
      [storage_session_id, id, "?kind=skill&id=a1&version=1"],
      [newId(), id, ""],
      ...(route.includes(":f") ? ([[storage_session_id, newId(), ""]] as const) : []),
    ] as const;
    const bodies = new Set<string>();
    const times: number[] = [];
    const refuse = async (session: string, fileId: string, query: string, user: string): Promise<void> => {
      const start = performance.now();
      const answer = await call(
        at(route, session, fileId) + query,
        as(user, { method, headers: { "x-request-id": "same" } }),
      );
      const text = await answer.text();
      times.push(performance.now() - start);
      expect(answer.status).toBe(404);
      bodies.add(text);
    };
    for (const [session, fileId, query] of causes) await refuse(session, fileId, query, "u1");
    await refuse(storage_session_id, id, "", "u2");
    expect(bodies.size).toBe(1);
    expect(Math.min(...times)).toBeGreaterThan(8);
    expect((await call(at(route, storage_session_id, id), { method })).status).toBe(200);
  });

  test.each(routes)("%s %s: ids have 21 characters", async (method, route) => {
    for (const bad of [
      "short",
      `${newId()}x`,
      `${"a".repeat(20)}%2F`,
      "550e8400-e29b-41d4-a716-446655440000",
    ]) {
      const answers = [await call(at(route, bad, newId()), { method })];
      if (route.includes(":f")) answers.push(await call(at(route, newId(), bad), { method }));
      for (const answer of answers) {
        expect(answer.status).toBe(400);
        if (method !== "HEAD") expect((await errorOf(answer))[1]).toBe("invalid_id");
      }
    }
  });

  test.each(routes)("%s %s: the query is checked, each field at most once", async (method, route) => {
    for (const query of [
      "kind=x",
      "kind=agent",
      "kind=skill&id=s",
      "kind=user&kind=user",
      "kind=agent&id=a&id=b",
      "version=1",
    ]) {
      const answer = await call(`${at(route, newId(), newId())}?${query}`, { method });
      expect(answer.status).toBe(400);
      if (method !== "HEAD") expect((await errorOf(answer))[1]).toBe("invalid_request");
    }
    const unknown = await call(`${at(route, newId(), newId())}?version=&x=y`, { method });
    expect(unknown.status).toBe(404);
  });
});

describe("the lookup of records", () => {
  test("asks the file server for what the cache has lost, and keeps the order", async () => {
    const { files, storage_session_id } = await upload(file("a"), file("b"), file("c"));
    const refs = files.map(({ id }) => ({ id, storage_session_id }));
    const unknown = { id: newId(), storage_session_id };
    const broken = { id: "x", storage_session_id };
    const redis = new Redis(api.redisServer.socket);
    const key = (index: number) => objectRecordKey(storage_session_id, files[index]?.id ?? "");
    await redis.del(key(0));
    await redis.set(key(1), "{broken");
    const records = await api.lookupRecords([refs[2], unknown, refs[1], broken, refs[0]] as never, "r");
    expect(records.map((record) => record?.filename)).toEqual(["c", undefined, "b", undefined, "a"]);
    expect(JSON.parse((await redis.get(key(0))) ?? "null")).toMatchObject({ filename: "a" });
    redis.disconnect();
    expect(await api.lookupRecords([], "r")).toEqual([]);
  });
});

describe("the counters", () => {
  test("count files and downloads by outcome", async () => {
    const values = async (name: string) => {
      const metric = await api.registry.getSingleMetric(name)?.get();
      return Object.fromEntries((metric?.values ?? []).map(({ labels, value }) => [labels.outcome, value]));
    };
    const uploadsBefore = await values("svc_file_uploads_total");
    const { files, storage_session_id } = await upload(file("a"), file("b"));
    await post("upload/batch", [file("a"), file("..")]);
    const uploads = await values("svc_file_uploads_total");
    expect((uploads.success ?? 0) - (uploadsBefore.success ?? 0)).toBe(3);
    expect((uploads.refused ?? 0) - (uploadsBefore.refused ?? 0)).toBe(1);
    const before = await values("svc_file_downloads_total");
    await (await call(`download/${storage_session_id}/${files[0]?.id}`)).text();
    await (await call(`download/${storage_session_id}/${newId()}`)).text();
    const after = await values("svc_file_downloads_total");
    expect((after.success ?? 0) - (before.success ?? 0)).toBe(1);
    expect((after.refused ?? 0) - (before.refused ?? 0)).toBe(1);
  });
});
