import type { StoredPart } from "@svc/api/files/store-part";
import { batchAnswer } from "@svc/api/files/upload-answer";
import { type ErrorCode, newId, ServiceError, type UploadedFile } from "@svc/contracts";
import { describe, expect, test } from "vitest";

const session = newId();
const good = (filename: string): StoredPart => ({ ok: true, id: newId(), filename });
const bad = (filename: string, code: ErrorCode): StoredPart => ({
  ok: false,
  filename,
  error: new ServiceError(code),
});

function answer(parts: StoredPart[]) {
  const stored = parts
    .filter((part) => part.ok)
    .map((part) => ({ id: part.id, filename: part.filename }) as UploadedFile)
    .reverse();
  return batchAnswer({ session, parts, stored, maxFiles: 200 }, "request-1");
}

describe("the answer of a batch", () => {
  test("with all files stored is a success without error fields", () => {
    const { status, body } = answer([good("a"), good("b")]);
    expect(status).toBe(200);
    expect(Object.keys(body).sort()).toEqual([
      "failed",
      "files",
      "message",
      "storage_session_id",
      "succeeded",
    ]);
    expect(body).toMatchObject({ message: "success", storage_session_id: session, succeeded: 2, failed: 0 });
  });

  test("with some stored keeps the order of the parts", () => {
    const { status, body } = answer([good("a"), bad("b", "file_too_large"), good("c")]);
    expect(status).toBe(200);
    expect(body).toMatchObject({ message: "partial_success", succeeded: 2, failed: 1 });
    expect(body.files.map(({ filename }) => filename)).toEqual(["a", "b", "c"]);
    expect(body.files[1]).toEqual({
      status: "error",
      filename: "b",
      error: "file_too_large",
      message: "The file is larger than allowed.",
    });
  });

  test.each([
    [["file_too_large", "file_too_large"], 413],
    [["storage_unavailable", "storage_unavailable"], 502],
    [["storage_unavailable", "internal_error"], 502],
    [["invalid_file_name"], 400],
    [["file_too_large", "invalid_file_name"], 400],
    [["file_too_large", "storage_unavailable"], 400],
  ] as [ErrorCode[], number][])("with none stored because of %j is %i", (codes, status) => {
    const result = answer(codes.map((code, index) => bad(`f${index}`, code)));
    expect(result.status).toBe(status);
    expect(result.body).toMatchObject({
      message: "error",
      error: "upload_failed",
      request_id: "request-1",
      storage_session_id: session,
      succeeded: 0,
      failed: codes.length,
    });
    expect(result.body.details).toMatch(/^No file could be stored\./);
  });

  test("over the limit says so", () => {
    const { body } = answer([good("a"), bad("b", "too_many_files")]);
    expect(body).toMatchObject({ filesLimitReached: true, maxFiles: 200, message: "partial_success" });
  });

  test("shows broken names as text that can be shown", () => {
    const { body } = answer([bad(`\ud800${"x".repeat(5000)}`, "invalid_file_name")]);
    const name = body.files[0]?.filename ?? "";
    expect(name.isWellFormed()).toBe(true);
    expect(name.length).toBe(256);
  });
});
