import { newId, objectRecordKey, type UploadedFile } from "@svc/contracts";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FileApi, startFileApi } from "../../support/file-api.ts";
import { errorOf, field, file, fileClient } from "../../support/file-client.ts";

let api: FileApi;
const { call, upload } = fileClient(() => api);
beforeAll(async () => {
  api = await startFileApi();
});
afterAll(() => api?.stop());

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
