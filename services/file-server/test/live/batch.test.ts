/** Small inputs and directories in one answer. */
import { randomBytes } from "node:crypto";
import { truncateSync } from "node:fs";
import { join } from "node:path";
import {
  type BatchRequest,
  decodeInputBatch,
  INPUT_BATCH_TYPE,
  type InputBatch,
  MAX_BATCH_BYTES,
  MAX_BATCHED_FILE_BYTES,
  newId,
  objectRecordKey,
} from "@svc/contracts";
import { describe, expect, test } from "vitest";
import { call, errorOf, objectPath, PUT_HEADERS, redis, server, TOKEN } from "../support/server.ts";

interface Put {
  storage_session_id: string;
  id: string;
}

async function put(
  content: Buffer | string,
  { session = newId(), name = "a.csv", readOnly = false } = {},
): Promise<Put> {
  const id = newId();
  const answer = await call("PUT", objectPath(session, id), {
    body: Buffer.from(content),
    headers: {
      ...PUT_HEADERS,
      "x-original-filename": encodeURIComponent(name),
      "x-read-only": String(readOnly),
    },
  });
  expect(answer.status).toBe(200);
  return { storage_session_id: session, id };
}

const post = (request: unknown, headers: Record<string, string> = TOKEN) =>
  call("POST", "/inputs", {
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(request),
  });

async function read(request: BatchRequest): Promise<InputBatch> {
  const answer = await post(request);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, INPUT_BATCH_TYPE]);
  return decodeInputBatch(Buffer.from(await answer.arrayBuffer()), request);
}

const contents = ({ files }: InputBatch) => files.map((file) => file?.content.toString());

describe("a batch", () => {
  test("has the files of several sessions in order, empty and larger ones, and which are read-only", async () => {
    const large = randomBytes(MAX_BATCHED_FILE_BYTES);
    const session = newId();
    const files = [
      await put("one"),
      await put("", { session }),
      await put(large, { session }),
      await put("four", { readOnly: true }),
    ];
    const batch = await read({ files, directories: [] });
    expect(contents(batch)).toEqual(["one", "", large.toString(), "four"]);
    expect(batch.files[2]?.content.equals(large)).toBe(true);
    expect(batch.files.map((file) => file?.readOnly)).toEqual([false, false, false, true]);
    expect(batch.directories).toEqual([]);
  });

  test("has the directories of its sessions, and says of a session without files that it has none", async () => {
    const [both, plain, only, gone] = [newId(), newId(), newId(), newId()];
    const files = [await put("x", { session: both }), await put("y", { session: plain })];
    for (const [session, name] of [
      [both, "logs/.dirkeep"],
      [both, "other.txt"],
      [only, "a/b/.dirkeep"],
    ] as const)
      await put("", { session, name });
    const batch = await read({ files, directories: [both, plain, only, gone] });
    expect(batch.directories).toEqual([["logs/.dirkeep"], [], ["a/b/.dirkeep"], undefined]);
  });

  test("leaves out what is gone, damaged, or too much for one answer, and nothing else", async () => {
    const [gone, damaged, small] = [
      { storage_session_id: newId(), id: newId() },
      await put("damaged"),
      await put("small"),
    ];
    truncateSync(join(server.directory, "sessions", damaged.storage_session_id, damaged.id), 3);
    const large = await put(Buffer.alloc(MAX_BATCHED_FILE_BYTES + 1));
    expect(contents(await read({ files: [gone, damaged, large, small], directories: [] }))).toEqual([
      undefined,
      undefined,
      undefined,
      "small",
    ]);
    const fitting = MAX_BATCH_BYTES / MAX_BATCHED_FILE_BYTES;
    const full = await put(Buffer.alloc(MAX_BATCHED_FILE_BYTES));
    const session = small.storage_session_id;
    const batch = await read({ files: Array(fitting + 2).fill(full), directories: [session] });
    expect(batch.files.filter((file) => file !== undefined)).toHaveLength(fitting);
    expect(batch.directories).toEqual([[]]);
  });

  test("has up to fifty directories of a session", async () => {
    const session = newId();
    for (let at = 0; at < 55; at++) await put("", { session, name: `d${at}/.dirkeep` });
    expect((await read({ files: [], directories: [session] })).directories[0]).toHaveLength(50);
  });

  test("is a use of its objects: their records are cached", async () => {
    const file = await put("x");
    const key = objectRecordKey(file.storage_session_id, file.id);
    await redis.del(key);
    await read({ files: [file], directories: [] });
    expect(JSON.parse((await redis.get(key)) ?? "null")).toMatchObject({ id: file.id, size: 1 });
  });

  test("is for callers with the token, of ids and of a bounded number", async () => {
    expect(await errorOf(await post({ files: [], directories: [] }, {}))).toEqual([401, "unauthorized"]);
    expect(await errorOf(await post({ files: [], directories: ["../../etc"] }))).toEqual([400, "invalid_id"]);
    const files = [{ storage_session_id: newId(), id: "../x" }];
    expect(await errorOf(await post({ files, directories: [] }))).toEqual([400, "invalid_id"]);
    const many = Array.from({ length: 258 }, newId);
    expect(await errorOf(await post({ files: [], directories: many }))).toEqual([400, "invalid_request"]);
    expect(await errorOf(await post({ files: "all" }))).toEqual([400, "invalid_request"]);
  });
});
