import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { newId, type UploadedFile } from "@svc/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FileApi, startFileApi } from "../../support/file-api.ts";
import { errorOf, field, file, fileClient } from "../../support/file-client.ts";

let api: FileApi;
const { call, post, upload } = fileClient(() => api);
beforeAll(async () => {
  api = await startFileApi();
});
afterAll(() => api?.stop());

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

  test("of several clients at once, one of them slow, has the bytes of its file", async () => {
    const content = randomBytes(8 * 2 ** 20);
    const { files } = await upload(file("large.bin", content.toString("base64")));
    const { id, storage_session_id } = files[0] as UploadedFile;
    const received = await Promise.all(
      [0, 1, 20].map(async (pauseMs) => {
        const { body } = await call(`download/${storage_session_id}/${id}`);
        const decoder = new TextDecoder();
        let text = "";
        for await (const chunk of body ?? []) {
          text += decoder.decode(chunk, { stream: true });
          if (pauseMs > 0 && text.length < 2 ** 21) await sleep(pauseMs);
        }
        return text;
      }),
    );
    for (const text of received) expect(Buffer.from(text, "base64").equals(content)).toBe(true);
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
