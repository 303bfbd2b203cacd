/** What every driver must do with writes that are not admitted, and that it names all objects. Part of conformance.ts. */
import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { newId } from "@svc/contracts";
import { expect, test } from "vitest";
import type { ObjectAddress, ObjectStore } from "../../src/index.ts";
import { chunks, collect, failure } from "./content.ts";

const OWN = { namespace: "t:user:u", filename: "a.txt", contentType: "text/plain", readOnly: false };
const PENDING = { filename: "a.txt", contentType: "text/plain" };
const LIMIT = { maxBytes: 1_000_000 };

const address = (session = newId()): ObjectAddress => ({ session, file: newId() });

async function* thenFail(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield* chunks(bytes);
  throw new Error("the writer left");
}

/** `tested`: the store of the running test. */
export function admissionConformance(
  tested: () => { store: ObjectStore; countStored: () => Promise<number> },
): void {
  test("a write that is not admitted leaves nothing, and its writer is asked once all content is there", async () => {
    const { store, countStored } = tested();
    const asked: number[] = [];
    const refuse = async (bytes: number) => {
      asked.push(bytes);
      throw new Error("no room");
    };
    const limit = { ...LIMIT, admit: refuse };
    const at = address();
    await expect(store.put(at, chunks(randomBytes(10_000)), OWN, limit)).rejects.toThrow("no room");
    await expect(store.stage(at, chunks(randomBytes(20_000)), PENDING, limit)).rejects.toThrow("no room");
    expect(await failure(store.put(at, thenFail(randomBytes(30_000)), OWN, limit))).toBe("other");
    expect(asked).toEqual([10_000, 20_000]);
    expect(await failure(store.open(at))).toBe("not_found");
    expect(await countStored()).toBe(0);
  });

  test("a commit that is not admitted shows nothing and can be made later", async () => {
    const { store } = tested();
    const at = address();
    await store.stage(at, chunks(Buffer.from("12345")), PENDING, LIMIT);
    const commit = {
      namespace: "t:agent:a",
      readOnly: false,
      origin: "upload" as const,
      account: "t:user:u",
    };
    const refuse = async (records: readonly { size: number }[]) => {
      throw new Error(`no room for ${records.map(({ size }) => size)}`);
    };
    await expect(store.commit(at.session, [at.file], commit, refuse)).rejects.toThrow("no room for 5");
    expect(await failure(store.open(at))).toBe("not_found");
    const admitted: unknown[] = [];
    const records = await store.commit(at.session, [at.file], commit, async (all) => {
      admitted.push(...all);
    });
    expect(records).toMatchObject([{ id: at.file, size: 5, ...commit }]);
    expect(admitted).toEqual(records);
    expect((await store.open(at)).record).toEqual(records[0]);
  });

  test("a stored object outlives pending writes to its address that fail", async () => {
    const { store, countStored } = tested();
    const at = address();
    const bytes = randomBytes(10_000);
    await store.stage(at, chunks(bytes), PENDING, LIMIT);
    await store.commit(at.session, [at.file], { namespace: "t:user:u", readOnly: false });
    expect(await failure(store.stage(at, chunks(bytes), PENDING, { maxBytes: 9999 }))).toBe("too_large");
    expect(await failure(store.stage(at, thenFail(bytes), PENDING, LIMIT))).toBe("other");
    expect(await buffer((await store.open(at)).read())).toEqual(bytes);
    expect(await countStored()).toBe(1);
  });

  test("all objects are named once, and none that is pending", async () => {
    const { store } = tested();
    const session = newId();
    const stored = [address(session), address(session), address()];
    for (const at of stored) await store.put(at, chunks(Buffer.from("x")), OWN, LIMIT);
    await store.stage(address(), chunks(Buffer.from("x")), PENDING, LIMIT);
    const found = await collect(store.addresses());
    const names = (all: readonly ObjectAddress[]) => all.map((at) => `${at.session}/${at.file}`).sort();
    expect(names(found)).toEqual(names(stored));
  });
}
