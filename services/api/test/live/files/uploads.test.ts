import { createHash, randomBytes } from "node:crypto";
import type { UploadedFile } from "@svc/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FileApi, FORM_TYPE, formBytes, startFileApi } from "../../support/file-api.ts";
import { as, errorOf, field, file, fileClient, type Uploaded } from "../../support/file-client.ts";

let api: FileApi;
const { call, post } = fileClient(() => api);
beforeAll(async () => {
  api = await startFileApi();
});
afterAll(() => api?.stop());

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
      "a version that is not a number",
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
