/** Objects in a bucket that cannot be looked at or removed keep the sweep from no other. */
import { newId } from "@svc/contracts";
import { type ObjectAddress, StoreError } from "@svc/object-store";
import type { Bucket } from "@svc/object-store/s3/bucket";
import { removeLeftovers, unusedObjects } from "@svc/object-store/s3/sweep";
import { expect, test } from "vitest";
import { collect, failure } from "../../support/content.ts";

const OLD = new Date(0);
const NOW = new Date(1);
const NONCE = "0".repeat(32);
const all = async () => true;
const nothing = async () => undefined;

/** A bucket with these keys, all of them old. It refuses every call about a stuck key or a stuck prefix. */
function bucketOf(given: readonly string[], stuck: ReadonlySet<string>) {
  const keys = new Set(given);
  const refuse = async (key: string) => {
    if (stuck.has(key)) throw new StoreError("unavailable", "it is stuck");
  };
  async function* list(prefix: string) {
    await refuse(prefix);
    for (const key of [...keys].sort()) if (key.startsWith(prefix)) yield { key, size: 1, modified: OLD };
  }
  async function* openUploads(prefix: string) {
    for await (const { key } of list(`uploads/${prefix}`)) yield { key, uploadId: "u", begun: OLD };
  }
  const remove = async (key: string) => {
    await refuse(key);
    keys.delete(key);
  };
  const head = async (key: string) => {
    await refuse(key);
    return keys.has(key) ? { size: 0, modified: OLD } : undefined;
  };
  const bucket = { list, openUploads, delete: remove, abortUpload: remove, head } as unknown as Bucket;
  return { bucket, keys };
}

const address = (): ObjectAddress => ({ session: newId(), file: newId() });
const placeOf = ({ session, file }: ObjectAddress) => `${session}/${file}`;
const byPlace = (left: ObjectAddress, right: ObjectAddress) => (placeOf(left) < placeOf(right) ? -1 : 1);

/** Three addresses in the order of a listing. */
const three = () =>
  Array.from({ length: 3 }, address).sort(byPlace) as [ObjectAddress, ObjectAddress, ObjectAddress];

test("an object that cannot be looked at is told of, and keeps no other from being named as unused", async () => {
  const [stuck, ...others] = three();
  const records = [stuck, ...others].map((at) => `records/${placeOf(at)}`);
  const { bucket } = bucketOf(records, new Set([`uses/${placeOf(stuck)}`]));
  const told: unknown[] = [];
  const walk = unusedObjects(bucket, NOW, all, (error) => void told.push(error));
  expect(await collect(walk)).toEqual(others);
  expect(told).toMatchObject([{ failure: "unavailable" }]);
});

test("a listing of uses that fails ends the walk: without it every object looks unused", async () => {
  const records = three().map((at) => `records/${placeOf(at)}`);
  const { bucket } = bucketOf(records, new Set(["uses/"]));
  const walk = unusedObjects(bucket, NOW, all, () => undefined);
  expect(await failure(collect(walk))).toBe("unavailable");
});

test("leftovers that cannot be removed are told of, and keep no others", async () => {
  const places = three().map(placeOf);
  const kinds = (place: string) => [
    `uploads/content/${place}`,
    `pending/${place}`,
    `content/${place}/${NONCE}`,
    `uses/${place}`,
    `batches/${place.split("/")[0]}`,
    `probes/${place.split("/")[1]}`,
  ];
  const stuck = kinds(places[0] as string);
  const { bucket, keys } = bucketOf(places.flatMap(kinds), new Set(stuck));
  const told: unknown[] = [];
  // Two uploads and two contents.
  expect(await removeLeftovers(bucket, NOW, (error) => void told.push(error), nothing)).toBe(4);
  expect(told).toHaveLength(stuck.length);
  expect([...keys].sort()).toEqual([...stuck].sort());
});
