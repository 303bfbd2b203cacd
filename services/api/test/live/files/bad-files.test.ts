import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FileApi, startFileApi } from "../../support/file-api.ts";
import { errorOf, file, fileClient, type Uploaded } from "../../support/file-client.ts";

const LIMIT = 1_000_000;
let api: FileApi;
const { call, post, upload } = fileClient(() => api);
beforeAll(async () => {
  api = await startFileApi({
    MAX_FILE_SIZE: String(LIMIT),
    UPLOAD_MAX_FILES: "5",
    SANDBOX_MAX_PATH_LENGTH: "40",
    SANDBOX_MAX_NESTING_DEPTH: "3",
  });
});
afterAll(() => api?.stop());

describe("POST /v1/upload with one bad file", () => {
  test.each([
    ["too large", file("big", randomBytes(LIMIT + 1)), 413, "file_too_large"],
    ["named outside", file("../a"), 400, "invalid_file_name"],
    ["named absolutely", file("/etc/passwd"), 400, "invalid_file_name"],
    ["without name", file(""), 400, "invalid_file_name"],
    ["named too deep", file(`${"a/".repeat(3)}b`), 400, "invalid_file_name"],
    ["named too long", file("a".repeat(41)), 400, "invalid_file_name"],
    ["named with a line break", file("a%0Ab"), 400, "invalid_file_name"],
  ])("%s refuses the request and keeps nothing", async (_name, bad, status, code) => {
    const before = await api.fileServer.storedFiles();
    expect(await errorOf(await post("upload", [file("good"), bad, file("later")]))).toEqual([status, code]);
    expect(await api.fileServer.storedFiles()).toEqual(before);
  });

  test("a file of exactly the limit is fine, and five files are, but not six", async () => {
    await upload(file("a", randomBytes(LIMIT)), file(`a/b/${"c".repeat(36)}`));
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
        message: expect.stringMatching(/1,000,000 bytes/),
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
