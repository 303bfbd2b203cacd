/** Which objects every driver must name as unused. Part of conformance.ts. */
import { setTimeout as delay } from "node:timers/promises";
import { newId } from "@svc/contracts";
import { expect, test } from "vitest";
import type { ObjectAddress, ObjectStore } from "../../src/index.ts";
import { chunks, collect } from "./content.ts";

const OWN = { namespace: "t:user:u", filename: "a.txt", contentType: "text/plain", readOnly: false };
const LIMIT = { maxBytes: 1_000_000 };
/** Times of storing, of the question and of a use shall differ. */
const PAUSE_MS = 30;

async function storeObjects(store: ObjectStore, count: number): Promise<ObjectAddress[]> {
  const stored = Array.from({ length: count }, () => ({ session: newId(), file: newId() }));
  for (const at of stored) await store.put(at, chunks(Buffer.from("x")), OWN, LIMIT);
  await delay(PAUSE_MS);
  return stored;
}

async function use(store: ObjectStore, at: ObjectAddress): Promise<void> {
  const object = await store.open(at);
  await object.noteUse();
  await object.close();
}

/** `tested`: the store of the running test; it notes every use. */
export function unusedConformance(tested: () => ObjectStore): void {
  test("only what was neither stored nor used since a time is named as unused", async () => {
    const store = tested();
    const [idle, used] = (await storeObjects(store, 2)) as [ObjectAddress, ObjectAddress];
    const time = new Date();
    await delay(PAUSE_MS);
    await use(store, used);
    expect(await collect(store.unusedSince(time))).toEqual([idle]);
    expect(await collect(store.unusedSince(new Date(0)))).toEqual([]);
  });

  test("an object that comes into use while others are removed is not named as unused", async () => {
    const store = tested();
    const stored = await storeObjects(store, 3);
    const time = new Date();
    await delay(PAUSE_MS);
    const named: ObjectAddress[] = [];
    for await (const address of store.unusedSince(time)) {
      named.push(address);
      for (const other of stored) if (other.file !== address.file) await use(store, other);
    }
    expect(named).toHaveLength(1);
  });

  test("an object that comes into use while it is asked for is not named as unused", async () => {
    const store = tested();
    const [idle, used, unwanted] = (await storeObjects(store, 3)) as [
      ObjectAddress,
      ObjectAddress,
      ObjectAddress,
    ];
    const time = new Date();
    await delay(PAUSE_MS);
    const isWanted = async ({ file }: ObjectAddress) => {
      if (file === used.file) await use(store, used);
      return file !== unwanted.file;
    };
    expect(await collect(store.unusedSince(time, isWanted))).toEqual([idle]);
  });
}
