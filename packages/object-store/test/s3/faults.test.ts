/** What the S3 driver does when the server dies, hangs, loses answers, refuses, or is none that it can trust. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { newId } from "@svc/contracts";
import { createBucket, optionsFor, type TestBucket } from "@svc/test-kit/storage/s3/bucket";
import { type Gateway, startGateway } from "@svc/test-kit/storage/s3/gateway";
import { startForgetfulProxy } from "@svc/test-kit/system/forgetful-proxy";
import { freePort } from "@svc/test-kit/system/free-ports";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { type ObjectAddress, StoreError } from "../../src/index.ts";
import { S3ObjectStore } from "../../src/s3/driver.ts";
import { chunks, collect, failure } from "../support/content.ts";

const OWN = { namespace: "t:user:u", filename: "a.txt", contentType: "text/plain", readOnly: false };
const PENDING = { filename: "a.txt", contentType: "text/plain" };
const LIMIT = { maxBytes: 100_000_000 };
const FUTURE = new Date(Date.now() + 3_600_000);
const BIG = randomBytes(60_000_000);

const address = (session = newId()): ObjectAddress => ({ session, file: newId() });

let gateway: Gateway;
let tested: TestBucket;
/** A store behind the gateway that may die, and one behind the gateway that lives. */
let store: S3ObjectStore;
let steady: S3ObjectStore;

beforeAll(async () => {
  gateway = await startGateway(inject("s3Directory"));
});
afterAll(() => gateway.kill());
beforeEach(async () => {
  tested = await createBucket(inject("s3Endpoint"));
  store = new S3ObjectStore({ ...tested.options, endpoint: gateway.endpoint });
  steady = new S3ObjectStore(tested.options);
});
afterEach(() => tested.destroy());

const readAll = async (from: S3ObjectStore, at: ObjectAddress) => buffer((await from.open(at)).read());

async function uploadHasBegun(): Promise<void> {
  while ((await collect(tested.bucket.openUploads(""))).length === 0);
}

describe("a server that is killed", () => {
  test("during an upload shows nothing of it, and the same id can be stored afterwards", async () => {
    const at = address();
    await store.check();
    const put = failure(store.put(at, chunks(BIG, 65_536), OWN, LIMIT));
    await uploadHasBegun();
    await gateway.kill();
    expect(await put).toBe("unavailable");
    expect(await failure(steady.open(at))).toBe("not_found");
    expect(await failure(store.open(at))).toBe("unavailable");
    await gateway.start();
    await store.put(at, chunks(BIG, 65_536), OWN, LIMIT);
    expect((await readAll(store, at)).equals(BIG)).toBe(true);
    await store.removeLeftovers(FUTURE);
    expect((await tested.keys()).map((key) => key.split("/")[0])).toEqual(["content", "records"]);
  });

  test("and comes back during uploads leaves only whole objects", async () => {
    const puts = Array.from({ length: 12 }, () => {
      const at = address();
      const bytes = randomBytes(9_000_000);
      return { at, bytes, outcome: failure(store.put(at, chunks(bytes, 65_536), OWN, LIMIT)) };
    });
    await uploadHasBegun();
    await gateway.kill();
    await gateway.start();
    for (const { at, bytes, outcome } of puts) {
      if ((await outcome) === "none") expect((await readAll(steady, at)).equals(bytes)).toBe(true);
      else expect(await failure(steady.open(at))).toBe("not_found");
    }
  });

  test("and comes back during a read does not break it", async () => {
    const at = address();
    await store.put(at, chunks(BIG, 65_536), OWN, LIMIT);
    const stream = (await store.open(at)).read();
    const received: Buffer[] = [];
    for await (const chunk of stream) {
      received.push(chunk as Buffer);
      if (received.length === 3) {
        await gateway.kill();
        await gateway.start();
      }
    }
    expect(Buffer.concat(received).equals(BIG)).toBe(true);
  });

  test("during a read ends it with an error, not with a short content", async () => {
    const at = address();
    await store.put(at, chunks(BIG, 65_536), OWN, LIMIT);
    const stream = (await store.open(at)).read();
    await once(stream, "readable");
    await gateway.kill();
    await expect(buffer(stream)).rejects.toMatchObject({ failure: "unavailable" });
    await gateway.start();
  });
});

describe("a server that hangs", () => {
  test("is given up in bounded time, and used again when it answers", async () => {
    await store.check();
    gateway.pause();
    const begin = performance.now();
    const outcomes = await Promise.all([
      failure(store.open(address())),
      failure(store.list(newId(), 10)),
      failure(store.delete(address())),
    ]);
    expect(outcomes).toEqual(["unavailable", "unavailable", "unavailable"]);
    expect(performance.now() - begin).toBeLessThan(30_000);
    gateway.resume();
    expect(await failure(store.open(address()))).toBe("not_found");
  });
});

describe("answers that are lost", () => {
  test("do not make a stored object a failed one", async () => {
    const proxy = await startForgetfulProxy(
      inject("s3Endpoint"),
      (method, path) => method === "PUT" && path.includes("/records/"),
    );
    const behind = new S3ObjectStore({ ...tested.options, endpoint: proxy.endpoint });
    const at = address();
    const record = await behind.put(at, chunks(Buffer.from("x")), OWN, LIMIT);
    expect(proxy.lost()).toBeGreaterThan(0);
    const object = await steady.open(at);
    expect(object.record).toEqual(record);
    await object.close();
    await proxy.stop();
  });

  test("of bytes and records leave nothing half, whatever the writer is told", async () => {
    let count = 0;
    const proxy = await startForgetfulProxy(inject("s3Endpoint"), () => count++ % 3 === 1);
    const behind = new S3ObjectStore({ ...tested.options, endpoint: proxy.endpoint });
    const bytes = randomBytes(9_000_000);
    for (let round = 0; round < 10; round++) {
      const at = address();
      const outcome = await failure(behind.put(at, chunks(bytes, 65_536), OWN, LIMIT));
      const found = await failure(readAll(steady, at));
      expect(outcome === "none" ? ["none"] : ["none", "not_found"]).toContain(found);
    }
    expect(proxy.lost()).toBeGreaterThan(0);
    await proxy.stop();
  });

  test("of a batch show all of its objects or none", async () => {
    let count = 0;
    const proxy = await startForgetfulProxy(
      inject("s3Endpoint"),
      (method) => method === "PUT" && count++ % 4 < 3,
    );
    const behind = new S3ObjectStore({ ...tested.options, endpoint: proxy.endpoint });
    for (let round = 0; round < 5; round++) {
      const session = newId();
      const files = [address(session), address(session), address(session)];
      for (const at of files) await steady.stage(at, chunks(Buffer.from("x")), PENDING, LIMIT);
      const names = files.map(({ file }) => file);
      const outcome = await failure(
        behind.commit(session, names, { namespace: "t:user:u", readOnly: false }),
      );
      const seen = await Promise.all(files.map((at) => failure(readAll(steady, at))));
      expect(new Set(seen)).toEqual(new Set([outcome === "none" ? "none" : "not_found"]));
    }
    expect(proxy.lost()).toBeGreaterThan(0);
    await proxy.stop();
  });
});

describe("a server that cannot be used", () => {
  const everything = async (broken: S3ObjectStore): Promise<unknown[]> => {
    const operations = [
      () => broken.check(),
      () => broken.put(address(), chunks(Buffer.from("x")), OWN, LIMIT),
      () => broken.stage(address(), chunks(Buffer.from("x")), PENDING, LIMIT),
      () => broken.commit(newId(), [newId()], OWN),
      () => broken.open(address()),
      () => broken.list(newId(), 10),
      () => broken.delete(address()),
      () => broken.discard(newId()),
      () => collect(broken.unusedSince(new Date())),
      () => broken.removeLeftovers(new Date()),
    ];
    return Promise.all(
      operations.map((operation) =>
        operation().then(
          () => "none",
          (error: unknown) => error,
        ),
      ),
    );
  };
  const cases = {
    "a wrong secret": async () => ({
      ...tested.options,
      credentials: { accessKeyId: "access-key-of-tests", secretAccessKey: "another-secret" },
    }),
    "an unknown access key": async () => ({
      ...tested.options,
      credentials: { accessKeyId: "nobody", secretAccessKey: "another-secret" },
    }),
    "a missing bucket": async () => optionsFor(inject("s3Endpoint"), "test-not-there"),
    "nobody at the address": async () => ({
      ...tested.options,
      endpoint: `http://127.0.0.1:${await freePort()}`,
    }),
  };
  for (const [name, options] of Object.entries(cases)) {
    test(`because of ${name} is unavailable to everything, and says nothing of itself`, async () => {
      const given = await options();
      for (const error of await everything(new S3ObjectStore(given))) {
        expect(error).toBeInstanceOf(StoreError);
        const { failure: kind, message, cause } = error as StoreError;
        expect(kind).toBe("unavailable");
        expect(message).not.toMatch(/http|127\.|test-|key|bucket|secret/i);
        expect(`${cause} ${JSON.stringify(cause)}`).not.toContain("another-secret");
      }
    });
  }

  test("because it would replace objects is refused before the first write", async () => {
    // No server that ignores conditions is at hand: this one takes everything and keeps nothing.
    const written: string[] = [];
    const careless = createServer((incoming, answer) => {
      if (incoming.method === "PUT") written.push(incoming.url ?? "");
      incoming.resume().once("end", () => answer.setHeader("etag", '"x"').end());
    }).listen(0, "127.0.0.1");
    await once(careless, "listening");
    const { port } = careless.address() as { port: number };
    const refused = new S3ObjectStore({ ...tested.options, endpoint: `http://127.0.0.1:${port}` });
    expect(await failure(refused.check())).toBe("unavailable");
    expect(await failure(refused.put(address(), chunks(Buffer.from("x")), OWN, LIMIT))).toBe("unavailable");
    expect(written.filter((path) => !path.includes("/probes/"))).toEqual([]);
    careless.closeAllConnections();
    careless.close();
  });
});
