/** What every driver of object storage must do. Run it with a factory that makes an empty store for each test. */
import { createHash, randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { newId } from "@svc/contracts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ObjectAddress, ObjectStore } from "../../src/index.ts";
import { admissionConformance } from "./admission.ts";
import { chunks, failure } from "./content.ts";
import { unusedConformance } from "./unused.ts";

export interface StoreUnderTest {
  store: ObjectStore;
  /** Everything the store holds in whatever state: visible, pending, half written. */
  countStored: () => Promise<number>;
  destroy: () => Promise<void>;
}

const OWN = { namespace: "t:user:u", filename: "a.txt", contentType: "text/plain", readOnly: false };
const PENDING = { filename: "a.txt", contentType: "text/plain" };
const LIMIT = { maxBytes: 1_000_000 };

const address = (session = newId()): ObjectAddress => ({ session, file: newId() });
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function* thenFail(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield* chunks(bytes);
  throw new Error("the writer left");
}

/** Content that breaks off after the given number of turns of the event loop. */
async function* breakingOff(turns: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from("some bytes");
  for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
  throw new Error("broke off");
}

export function objectStoreConformance(name: string, create: () => Promise<StoreUnderTest>): void {
  describe(`${name} as an object store`, () => {
    let tested: StoreUnderTest;
    let store: ObjectStore;
    beforeEach(async () => {
      tested = await create();
      store = tested.store;
    });
    afterEach(() => tested.destroy());

    const read = async (at: ObjectAddress, first?: number, last?: number): Promise<Buffer> => {
      const object = await store.open(at);
      return buffer(object.read(first === undefined ? undefined : { first, last: last ?? first }));
    };

    for (const size of [0, 1, 4095, 70_000, 900_000]) {
      test(`an object of ${size} bytes comes back byte by byte with its record`, async () => {
        const at = address();
        const bytes = randomBytes(size);
        const record = await store.put(at, chunks(bytes), OWN, LIMIT);
        expect(record).toMatchObject({ ...OWN, id: at.file, storage_session_id: at.session, size });
        expect(record.etag).toBe(sha256(bytes));
        expect(Date.now() - Date.parse(record.lastModified)).toBeLessThan(10_000);
        const object = await store.open(at);
        expect(object.record).toEqual(record);
        expect(await buffer(object.read())).toEqual(bytes);
      });
    }

    test("ranges return exactly their bytes", async () => {
      const at = address();
      const bytes = randomBytes(600_000);
      await store.put(at, chunks(bytes), OWN, LIMIT);
      for (const [first, last] of [
        [0, 0],
        [0, 599_999],
        [599_999, 599_999],
        [1000, 500_000],
      ] as const) {
        expect(await read(at, first, last)).toEqual(bytes.subarray(first, last + 1));
      }
    });

    test("an object of many megabytes comes back whole and in pieces", async () => {
      const at = address();
      const bytes = randomBytes(20_000_001);
      const record = await store.put(at, chunks(bytes, 65_536), OWN, { maxBytes: 20_000_001 });
      expect(record).toMatchObject({ size: bytes.length, etag: sha256(bytes) });
      expect((await read(at)).equals(bytes)).toBe(true);
      for (const [first, last] of [
        [8_000_000, 9_000_000],
        [16_777_215, 16_777_216],
        [20_000_000, 20_000_000],
      ] as const) {
        expect((await read(at, first, last)).equals(bytes.subarray(first, last + 1))).toBe(true);
      }
      expect(await tested.countStored()).toBe(1);
    });

    test("a reader that leaves early disturbs nobody", async () => {
      const at = address();
      const bytes = randomBytes(900_000);
      await store.put(at, chunks(bytes), OWN, LIMIT);
      const leaving = (await store.open(at)).read();
      for await (const _chunk of leaving) break;
      const never = (await store.open(at)).read();
      never.destroy();
      expect(await read(at)).toEqual(bytes);
      await store.delete(at);
      expect(await tested.countStored()).toBe(0);
    });

    test("names and types of any script survive", async () => {
      const at = address();
      const attributes = {
        ...OWN,
        filename: `${"日本/".repeat(9)}ü😀.csv`,
        contentType: "text/csv; charset=utf-8",
      };
      await store.put(at, chunks(Buffer.from("x")), { ...attributes, readOnly: true }, LIMIT);
      const object = await store.open(at);
      await object.close();
      expect(object.record).toMatchObject({ ...attributes, readOnly: true });
    });

    test("content over the limit is refused and leaves nothing", async () => {
      const at = address();
      expect(await failure(store.put(at, chunks(randomBytes(1001)), OWN, { maxBytes: 1000 }))).toBe(
        "too_large",
      );
      expect(await failure(store.stage(at, chunks(randomBytes(1001)), PENDING, { maxBytes: 1000 }))).toBe(
        "too_large",
      );
      expect(await failure(store.open(at))).toBe("not_found");
      expect(await tested.countStored()).toBe(0);
      await store.put(at, chunks(randomBytes(1000)), OWN, { maxBytes: 1000 });
    });

    test("content that breaks off leaves nothing", async () => {
      const at = address();
      await expect(store.put(at, thenFail(randomBytes(50_000)), OWN, LIMIT)).rejects.toThrow(
        "the writer left",
      );
      await expect(store.stage(at, thenFail(randomBytes(50_000)), PENDING, LIMIT)).rejects.toThrow(
        "the writer left",
      );
      expect(await failure(store.open(at))).toBe("not_found");
      expect(await tested.countStored()).toBe(0);
    });

    test("content is taken no faster than it is stored", async () => {
      let produced = 0;
      async function* endless(): AsyncGenerator<Uint8Array> {
        for (;;) {
          produced += 64 * 1024;
          yield Buffer.alloc(64 * 1024);
        }
      }
      expect(await failure(store.put(address(), endless(), OWN, { maxBytes: 5_000_000 }))).toBe("too_large");
      expect(produced).toBeLessThan(5_200_000);
    });

    test("an existing object is never replaced by a later writer", async () => {
      const at = address();
      await store.put(at, chunks(Buffer.from("first")), OWN, LIMIT);
      expect(await failure(store.put(at, chunks(Buffer.from("second")), OWN, LIMIT))).toBe("exists");
      expect((await read(at)).toString()).toBe("first");
      const race = address();
      const outcomes = await Promise.all(
        ["a", "b", "c", "d"].map((text) => failure(store.put(race, chunks(Buffer.from(text)), OWN, LIMIT))),
      );
      expect(outcomes.filter((outcome) => outcome === "none")).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === "exists")).toHaveLength(3);
      expect(await tested.countStored()).toBe(2);
    });

    test("the same object again is the same object; any difference is another one", async () => {
      const at = address();
      const put = (text: string, attributes = OWN) =>
        store.put(at, chunks(Buffer.from(text)), attributes, LIMIT);
      const first = await put("same");
      expect(await put("same")).toEqual(first);
      for (const change of [
        { namespace: "other" },
        { filename: "other" },
        { contentType: "text/x-other" },
        { readOnly: !OWN.readOnly },
      ]) {
        expect(await failure(put("same", { ...OWN, ...change })), JSON.stringify(change)).toBe("exists");
      }
      expect(await failure(put("Same"))).toBe("exists");
      const race = address();
      const raced = await Promise.all(
        Array.from({ length: 8 }, () => store.put(race, chunks(Buffer.from("x")), OWN, LIMIT)),
      );
      expect(new Set(raced.map(({ lastModified }) => lastModified)).size).toBe(1);
      expect(await tested.countStored()).toBe(2);
    });

    test("only the exact address finds an object", async () => {
      const at = address();
      await store.put(at, chunks(Buffer.from("x")), OWN, LIMIT);
      const others: ObjectAddress[] = [
        { session: newId(), file: at.file },
        { session: at.session, file: newId() },
        { session: at.session, file: at.file.slice(0, 20) },
        { session: at.session, file: ".." },
        { session: "..", file: at.file },
        { session: at.session, file: `../${at.session}/${at.file}`.slice(0, 21) },
      ];
      for (const other of others) expect(await failure(store.open(other))).toBe("not_found");
      expect(await failure(store.list("..", 10))).toBe("not_found");
    });

    test("a deleted object is gone, once", async () => {
      const at = address();
      await store.put(at, chunks(Buffer.from("x")), OWN, LIMIT);
      await store.delete(at);
      expect(await failure(store.open(at))).toBe("not_found");
      expect(await failure(store.delete(at))).toBe("not_found");
      expect(await tested.countStored()).toBe(0);
    });

    test("a read that has begun ends whole although the object is deleted", async () => {
      const at = address();
      const bytes = randomBytes(900_000);
      await store.put(at, chunks(bytes), OWN, LIMIT);
      const object = await store.open(at);
      const stream = object.read();
      await store.delete(at);
      expect(await buffer(stream)).toEqual(bytes);
    });

    test("a list holds the records of its session only, bounded", async () => {
      const session = newId();
      const records = [];
      for (let index = 0; index < 5; index++) {
        records.push(await store.put(address(session), chunks(Buffer.from(`${index}`)), OWN, LIMIT));
      }
      await store.put(address(), chunks(Buffer.from("other")), OWN, LIMIT);
      records.sort((left, right) => (left.id < right.id ? -1 : 1));
      expect(await store.list(session, 100)).toEqual(records);
      expect(await store.list(session, 2)).toEqual(records.slice(0, 2));
      expect(await failure(store.list(newId(), 10))).toBe("not_found");
      expect((await store.ids(session, 100)).sort()).toEqual(records.map(({ id }) => id));
      expect(await store.ids(session, 2)).toHaveLength(2);
    });

    describe("pending objects", () => {
      test("nobody sees them before the commit, everybody after it", async () => {
        const session = newId();
        const [one, two, dropped] = [address(session), address(session), address(session)];
        for (const at of [one, two, dropped]) {
          const staged = await store.stage(at, chunks(Buffer.from(at.file)), PENDING, LIMIT);
          expect(staged.etag).toBe(sha256(Buffer.from(at.file)));
        }
        expect(await failure(store.open(one))).toBe("not_found");
        expect(await failure(store.list(session, 10))).toBe("not_found");
        const records = await store.commit(session, [two.file, one.file], {
          namespace: "t:agent:x",
          readOnly: true,
        });
        expect(records.map(({ id }) => id)).toEqual([two.file, one.file]);
        expect(records[0]).toMatchObject({ ...PENDING, namespace: "t:agent:x", readOnly: true, size: 21 });
        expect((await read(one)).toString()).toBe(one.file);
        expect(await failure(store.open(dropped))).toBe("not_found");
        expect((await store.list(session, 10)).length).toBe(2);
        expect(await tested.countStored()).toBe(2);
      });

      test("a commit that names a missing object shows nothing", async () => {
        const session = newId();
        const at = address(session);
        await store.stage(at, chunks(Buffer.from("x")), PENDING, LIMIT);
        const commit = store.commit(session, [at.file, newId()], { namespace: "t:user:u", readOnly: false });
        expect(await failure(commit)).toBe("not_found");
        expect(await failure(store.open(at))).toBe("not_found");
        await store.discard(session);
        expect(await tested.countStored()).toBe(0);
      });

      test("writes that break off while others are committed disturb nothing and leave nothing", async () => {
        for (let round = 0; round < 30; round++) {
          const session = newId();
          const good = address(session);
          await store.stage(good, chunks(Buffer.from("good")), PENDING, LIMIT);
          const broken = Array.from({ length: 16 }, (_, turns) =>
            failure(store.stage(address(session), breakingOff(turns * 2), PENDING, LIMIT)),
          );
          await broken[round % 16];
          const committed = store.commit(session, [good.file], { namespace: "t:user:u", readOnly: false });
          expect(await committed).toMatchObject([{ id: good.file }]);
          expect(new Set(await Promise.all(broken))).toEqual(new Set(["other"]));
          expect(await store.list(session, 10)).toMatchObject([{ id: good.file }]);
          await store.discard(session);
        }
        expect(await tested.countStored()).toBe(30);
      });

      test("a session whose objects are all deleted leaves nothing", async () => {
        const session = newId();
        const files = [address(session), address(session), address(session)];
        for (const at of files) await store.stage(at, chunks(Buffer.from("x")), PENDING, LIMIT);
        const names = files.map(({ file }) => file);
        await store.commit(session, names, { namespace: "t:user:u", readOnly: false });
        for (const [index, at] of files.entries()) {
          expect((await read(at)).toString()).toBe("x");
          await store.delete(at);
          expect(await tested.countStored()).toBe(2 - index);
        }
        expect(await failure(store.list(session, 10))).toBe("not_found");
      });

      test("a session is committed once", async () => {
        const session = newId();
        const at = address(session);
        await store.put(address(session), chunks(Buffer.from("x")), OWN, LIMIT);
        await store.stage(at, chunks(Buffer.from("x")), PENDING, LIMIT);
        const commit = { namespace: "t:user:u", readOnly: false };
        expect(await failure(store.commit(session, [at.file], commit))).toBe("exists");
        expect((await store.list(session, 10)).length).toBe(1);
      });

      test("the same commit again is the same, any other is none", async () => {
        const session = newId();
        const [one, two] = [address(session), address(session)];
        for (const at of [one, two]) await store.stage(at, chunks(Buffer.from(at.file)), PENDING, LIMIT);
        const names = [two.file, one.file];
        const commit = {
          namespace: "t:agent:x",
          readOnly: false,
          origin: "upload",
          account: OWN.namespace,
        } as const;
        const records = await store.commit(session, names, commit);
        expect(await store.commit(session, names, commit)).toEqual(records);
        expect(await store.commit(session, [one.file, two.file], commit)).toEqual(records.toReversed());
        for (const [files, change] of [
          [[one.file], {}],
          [[...names, newId()], {}],
          [names, { namespace: "t:agent:y" }],
          [names, { readOnly: true }],
          [names, { account: "t:user:v" }],
        ] as const) {
          expect(await failure(store.commit(session, files, { ...commit, ...change }))).toBe("not_found");
        }
        await store.discard(session);
        expect(await store.list(session, 10)).toHaveLength(2);
        expect((await read(one)).toString()).toBe(one.file);
        expect(await tested.countStored()).toBe(2);
      });

      test("the same commit several times at once, and a discard of its session, have turns", async () => {
        for (const names of [[newId()], [newId(), newId()]]) {
          const session = newId();
          for (const file of names)
            await store.stage({ session, file }, chunks(Buffer.from(file)), PENDING, LIMIT);
          const commit = { namespace: "t:user:u", readOnly: true };
          const others: Promise<unknown>[] = [];
          const records = await store.commit(session, names, commit, async () => {
            others.push(store.commit(session, names, commit), store.discard(session));
            // Time to get in the way, for those that do not wait.
            await delay(100);
          });
          expect(await Promise.all(others)).toEqual([records, undefined]);
          for (const file of names) expect((await read({ session, file })).toString()).toBe(file);
        }
      });

      test("a discard drops them all, and dropping nothing is fine", async () => {
        const session = newId();
        await store.stage(address(session), chunks(Buffer.from("x")), PENDING, LIMIT);
        await store.stage(address(session), chunks(Buffer.from("y")), PENDING, LIMIT);
        await store.discard(session);
        await store.discard(session);
        expect(await tested.countStored()).toBe(0);
      });
    });

    admissionConformance(() => tested);

    unusedConformance(() => store);

    test("leftovers go when they are old, and not before", async () => {
      await store.stage(address(), chunks(Buffer.from("x")), PENDING, LIMIT);
      await store.put(address(), chunks(Buffer.from("x")), OWN, LIMIT);
      expect(await store.removeLeftovers(new Date(Date.now() - 60_000))).toBe(0);
      expect(await tested.countStored()).toBe(2);
      expect(await store.removeLeftovers(new Date(Date.now() + 1000))).toBe(1);
      expect(await tested.countStored()).toBe(1);
    });

    test("a usable store says so and keeps nothing of the question", async () => {
      await store.check();
      expect(await tested.countStored()).toBe(0);
    });
  });
}
