/** What lies in the bucket: damage is seen, and what belongs to no object is swept. */
import { randomBytes } from "node:crypto";
import dns from "node:dns";
import { buffer } from "node:stream/consumers";
import { CreateMultipartUploadCommand, ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3";
import { newId } from "@svc/contracts";
import { createBucket, type TestBucket } from "@svc/test-kit/storage/s3/bucket";
import { afterEach, beforeEach, describe, expect, inject, test, vi } from "vitest";
import { type ObjectAddress, StoreError } from "../../src/index.ts";
import { Bucket } from "../../src/s3/bucket.ts";
import { S3ObjectStore } from "../../src/s3/driver.ts";
import { chunks, collect, failure } from "../support/content.ts";

const OWN = { namespace: "t:user:u", filename: "a.txt", contentType: "text/plain", readOnly: false };
const LIMIT = { maxBytes: 100_000_000 };
const FUTURE = new Date(Date.now() + 3_600_000);
const NONCE = "0".repeat(32);

let tested: TestBucket;
let store: S3ObjectStore;
beforeEach(async () => {
  tested = await createBucket(inject("s3Endpoint"));
  store = new S3ObjectStore(tested.options);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await tested.destroy();
});

const address = (session = newId()): ObjectAddress => ({ session, file: newId() });
const bytes = randomBytes(900_000);
const BIG = randomBytes(9_000_000);
type Resolved = (error: null, addresses: readonly { address: string; family: number }[]) => void;

/** Has the server end each listing after so many keys, not after its thousand. Counts the listings that went on after an end. */
function smallListings(keys: number): () => number {
  const { send } = S3Client.prototype;
  let continued = 0;
  vi.spyOn(S3Client.prototype, "send").mockImplementation(function (this: S3Client, ...args: unknown[]) {
    const [command] = args;
    if (command instanceof ListObjectsV2Command) {
      command.input.MaxKeys = keys;
      if (command.input.ContinuationToken !== undefined) continued++;
    }
    return Reflect.apply(send, this, args);
  });
  return () => continued;
}

async function stored(): Promise<{ at: ObjectAddress; content: string; record: string }> {
  const at = address();
  await store.put(at, chunks(bytes), OWN, LIMIT);
  const place = `${at.session}/${at.file}`;
  const content = (await tested.keys()).find((key) => key.startsWith(`content/${place}/`)) ?? "";
  return { at, content, record: `records/${place}` };
}

describe("an object that was damaged in the bucket", () => {
  test("by other bytes of the same size ends its read before the last byte", async () => {
    const { at, content } = await stored();
    await tested.bucket.put(content, randomBytes(bytes.length));
    const received: Buffer[] = [];
    const read = async () => {
      for await (const chunk of (await store.open(at)).read()) received.push(chunk as Buffer);
    };
    expect(await failure(read())).toBe("damaged");
    expect(Buffer.concat(received).length).toBeLessThan(bytes.length);
  });

  test("by missing, fewer or more bytes is damaged, and lists leave it out", async () => {
    const { at, content } = await stored();
    const other = address(at.session);
    await store.put(other, chunks(Buffer.from("x")), OWN, LIMIT);
    for (const length of [bytes.length - 1, bytes.length + 1, 0]) {
      await tested.bucket.put(content, Buffer.alloc(length));
      expect(await failure(store.open(at))).toBe("damaged");
    }
    await tested.bucket.delete(content);
    expect(await failure(store.open(at))).toBe("damaged");
    expect((await store.list(at.session, 10)).map(({ id }) => id)).toEqual([other.file]);
  });

  test("by a record that is none, or another object's, is damaged and can be deleted", async () => {
    const { at, record } = await stored();
    const { record: foreign } = await stored();
    const { text } = await tested.bucket.text(foreign);
    for (const damage of ["", "{", "null", "{}", text]) {
      await tested.bucket.put(record, Buffer.from(damage));
      expect(await failure(store.open(at))).toBe("damaged");
    }
    await store.delete(at);
    expect(await failure(store.open(at))).toBe("not_found");
  });
});

describe("a commit that ends before its marker", () => {
  const commit = { namespace: "t:user:u", readOnly: false };

  async function broken(): Promise<{ session: string; files: string[] }> {
    const { session } = address();
    const files = [newId(), newId()];
    for (const file of files)
      await store.stage({ session, file }, chunks(bytes), { filename: "a", contentType: "a/b" }, LIMIT);
    const { create } = Bucket.prototype;
    const spy = vi.spyOn(Bucket.prototype, "create").mockImplementation(function (this: Bucket, key, body) {
      if (key.startsWith("batches/")) return Promise.reject(new StoreError("unavailable", "ended"));
      return Reflect.apply(create, this, [key, body]);
    });
    expect(await failure(store.commit(session, files, commit))).toBe("unavailable");
    spy.mockRestore();
    expect((await tested.keys()).filter((key) => key.startsWith("records/"))).toHaveLength(2);
    return { session, files };
  }

  test("shows nothing, and is completed when it is made again", async () => {
    const { session, files } = await broken();
    expect(await failure(store.list(session, 10))).toBe("not_found");
    const records = await store.commit(session, files, commit);
    expect(records.map(({ id }) => id)).toEqual(files);
    for (const file of files)
      expect(await buffer((await store.open({ session, file })).read())).toEqual(bytes);
  });

  test("leaves nothing when its session is discarded", async () => {
    await store.discard((await broken()).session);
    expect(await tested.keys()).toEqual([]);
  });
});

describe("a bucket that is named in the host", () => {
  test("serves the same objects as by its path", async () => {
    const { at } = await stored();
    const asked: string[] = [];
    const loopback = [{ address: "127.0.0.1", family: 4 }];
    vi.spyOn(dns, "lookup").mockImplementation(((host: string, _options: unknown, found: Resolved) => {
      asked.push(host);
      found(null, loopback);
    }) as never);
    const endpoint = `http://localhost:${new URL(tested.options.endpoint ?? "").port}`;
    const byHost = new S3ObjectStore({ ...tested.options, endpoint, forcePathStyle: false });
    expect(await buffer((await byHost.open(at)).read())).toEqual(bytes);
    const other = address();
    await byHost.put(other, chunks(BIG, 65_536), OWN, LIMIT);
    expect((await buffer((await store.open(other)).read())).equals(BIG)).toBe(true);
    expect(new Set(asked)).toEqual(new Set([`${tested.options.bucket}.localhost`]));
  });
});

describe("the sweep", () => {
  test("takes bytes, marks and uploads that belong to no object, and nothing else", async () => {
    const { at, content, record } = await stored();
    const lost = address();
    const twin = content.replace(/[^/]+$/, NONCE);
    const strays = [
      twin,
      `content/${lost.session}/${lost.file}/${NONCE}`,
      `uses/${lost.session}/${lost.file}`,
      `batches/${lost.session}`,
      "probes/left",
    ];
    for (const key of strays) await tested.bucket.put(key, Buffer.from("x"));
    await tested.bucket.client.send(
      new CreateMultipartUploadCommand({ Bucket: tested.options.bucket, Key: `content/${lost.session}/x` }),
    );
    expect(await store.removeLeftovers(new Date(0))).toBe(0);
    expect(await tested.keys()).toHaveLength(8);
    expect(await store.removeLeftovers(FUTURE)).toBe(3);
    expect(await tested.keys()).toEqual([content, record]);
    expect(await buffer((await store.open(at)).read())).toEqual(bytes);
  });

  test("finds its way through more objects than one listing shows", async () => {
    const listed = smallListings(25);
    const sessions = Array.from({ length: 3 }, () => newId());
    const count = 100;
    const text = JSON.stringify({});
    for (let from = 0; from < count; from += 50) {
      await Promise.all(
        Array.from({ length: 50 }, async (_unused, index) => {
          const place = `${sessions[index % 3]}/${newId()}`;
          await tested.bucket.put(`records/${place}`, Buffer.from(text));
          if (index % 2 === 0) await tested.bucket.put(`content/${place}/${NONCE}`, Buffer.from("x"));
          if (index % 5 === 0) await tested.bucket.put(`uses/${place}`, Buffer.from("x"));
        }),
      );
    }
    expect(await store.removeLeftovers(FUTURE)).toBe(0);
    expect(await tested.keys()).toHaveLength(count * 1.7);
    expect(await collect(store.unusedSince(FUTURE))).toHaveLength(count);
    expect(listed(), "listings that went on").toBeGreaterThan(count / 25);
  });

  test("shares the uploads that were broken off with a sweep of another file server", async () => {
    const input = { Bucket: tested.options.bucket, Key: `content/${newId()}/${newId()}/${NONCE}` };
    const begin = () => tested.bucket.client.send(new CreateMultipartUploadCommand(input));
    for (let upload = 0; upload < 20; upload++) await begin();
    const other = new S3ObjectStore(tested.options);
    const sweeps = [store, other, store].map((one) => failure(one.removeLeftovers(FUTURE)));
    expect(await Promise.all(sweeps)).toEqual(["none", "none", "none"]);
    expect(await tested.keys()).toEqual([]);
  });

  test("goes on behind a record that cannot be read, and leaves its bytes to it", async () => {
    const { content, record } = await stored();
    const twin = content.replace(/[^/]+$/, NONCE);
    await tested.bucket.put(twin, Buffer.from("x"));
    await tested.bucket.put(record, Buffer.from("{"));
    await tested.bucket.put("probes/left", Buffer.from("x"));
    expect(await failure(store.removeLeftovers(FUTURE))).toBe("none");
    expect(await tested.keys()).toEqual([twin, content, record].sort());
  });

  test("does not take an object whose use is younger than its bytes", async () => {
    const { at } = await stored();
    const time = new Date();
    const object = await store.open(at);
    await object.noteUse();
    await object.close();
    expect((await tested.keys()).filter((key) => key.startsWith("uses/"))).toHaveLength(1);
    expect(await collect(store.unusedSince(time))).toEqual([]);
  });
});
