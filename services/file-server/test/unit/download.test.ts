/** What a reader is told when storage fails while it sends an object. */
import { Readable } from "node:stream";
import { type OpenObject, StoreError, type StoreFailure } from "@svc/object-store";
import { createHttpServer, createLog, loadConfig } from "@svc/service-kit";
import { INTERNAL_TOKEN } from "@svc/test-kit/components/file-server";
import { describe, expect, test } from "vitest";
import { sendObject } from "../../src/download.ts";

const CONFIG = loadConfig("file-server", {
  SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
  LOG_LEVEL: "fatal",
});
const CONTENT = Buffer.from("0123456789");
const record = {
  id: "f",
  storage_session_id: "s",
  namespace: "acme:user:u1",
  filename: "a.txt",
  contentType: "text/plain",
  readOnly: false,
  size: CONTENT.length,
  etag: "abc",
  lastModified: "2026-01-31T10:00:00.789Z",
};

/** An object of which the first `whole` bytes can be read. */
function failingAfter(whole: number, failure: StoreFailure): OpenObject {
  async function* bytes(): AsyncGenerator<Buffer> {
    if (whole > 0) yield CONTENT.subarray(0, whole);
    throw new StoreError(failure, "reading an object failed");
  }
  return {
    record,
    read: () => Readable.from(bytes(), { objectMode: false }),
    close: async () => undefined,
    noteUse: async () => undefined,
  };
}

function answerOf(object: OpenObject, headers: Record<string, string> = {}) {
  const log = createLog("file-server", CONFIG);
  const app = createHttpServer({ log, lifecycle: { state: "running" }, bodyLimit: 1000, alwaysOn: [] });
  app.get("/", (request, reply) => sendObject(object, request, reply));
  return app.inject({ method: "GET", url: "/", headers });
}

describe("storage that fails", () => {
  test.each<[StoreFailure, number, string]>([
    ["unavailable", 503, "storage_unavailable"],
    ["damaged", 500, "internal_error"],
    ["not_found", 404, "file_not_found"],
  ])("before the first bytes are there (%s) is answered", async (failure, status, error) => {
    for (const headers of [{}, { range: "bytes=2-5" }]) {
      const answer = await answerOf(failingAfter(0, failure), headers);
      expect([answer.statusCode, answer.json().error]).toEqual([status, error]);
      expect(answer.headers).not.toHaveProperty("etag");
      expect(answer.headers).not.toHaveProperty("content-range");
    }
  });

  test("after the first bytes cuts the answer", async () => {
    await expect(answerOf(failingAfter(4, "unavailable"))).rejects.toThrow();
  });
});
