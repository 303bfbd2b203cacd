/** The whole system with its objects in S3: what a user does with files. */
import { randomBytes } from "node:crypto";
import { createBucket, type TestBucket } from "@svc/test-kit/storage/s3/bucket";
import { environmentFor } from "@svc/test-kit/storage/s3/environment";
import { Api, deletePath, metadataPath, output, refTo } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

let bucket: TestBucket;
let system: System;
let api: Api;

beforeAll(async () => {
  bucket = await createBucket(inject("s3Endpoint"));
  system = await startSystem({ env: { ...OPEN_LIMITS, ...environmentFor(bucket.options) } });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
  await bucket.destroy();
});

test("a file goes in, through a program, and out again, and is gone when it is deleted", async () => {
  const bytes = randomBytes(9_000_000);
  const [file, second] = await api.upload({ "data.bin": bytes, "two.txt": "two" });
  if (file === undefined || second === undefined) throw new Error("files are missing");
  expect((await api.bytes(file)).equals(bytes)).toBe(true);
  expect((await api.send("GET", metadataPath(file))).ok()).toMatchObject({ size: bytes.length });

  const answer = await api.exec({
    lang: "py",
    code: `data = open("data.bin", "rb").read()
open("reversed.bin", "wb").write(data[::-1])
print(len(data), open("two.txt").read())`,
    files: [refTo(file), refTo(second)],
  });
  expect(answer).toMatchObject({ stdout: "9000000 two\n", stderr: "", code: 0 });
  const reversed = output(answer, "reversed.bin");
  expect((await api.bytes(reversed)).equals(Buffer.from(bytes).reverse())).toBe(true);
  const part = await api.download(reversed, { range: "bytes=8388600-8388700" });
  expect([part.status, part.bytes]).toEqual([
    206,
    Buffer.from(bytes).reverse().subarray(8_388_600, 8_388_701),
  ]);

  const listed = (await api.send("GET", `/files/${file.storage_session_id}`)).ok<string[]>();
  expect(listed.sort()).toEqual(
    [file, second].map(({ id, storage_session_id }) => `${storage_session_id}/${id}`).sort(),
  );

  expect((await api.send("DELETE", deletePath(file))).status).toBe(200);
  expect((await api.download(file)).status).toBe(404);
  expect((await api.tryExec({ lang: "py", code: "", files: [refTo(file)] })).status).toBe(403);
  const keys = await bucket.keys();
  expect(keys.filter((key) => key.includes(file.id))).toEqual([]);
  expect(keys.filter((key) => key.startsWith("content/")).length).toBe(2);
});
