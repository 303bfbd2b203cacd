/**
 * Finds unused objects and the leftovers of aborted writes. It walks several listings of the bucket in parallel, in the order of
 * keys, with one page of each in memory. A listing may be older than a use or a commit. So the sweep reads the use marker again
 * before it reports an object as unused, and the records again before it removes bytes. When it cannot inspect or remove something,
 * it passes the error to `passOver` and continues with the next. A listing that fails ends the walk.
 */
import type { ObjectAddress, PassOver } from "../store.ts";
import type { Bucket, Listed } from "./bucket.ts";
import { addressIn, BATCHES, CONTENT, keyOf, PENDING, PROBES, RECORDS, sessionPrefix, USES } from "./keys.ts";

/** Unlike a listing, the headers of an object give its time in whole seconds. */
const HEAD_PRECISION_MS = 1000;

/** The content that the entry of an address names. `unknown`: the entry cannot be read. Undefined: there is no entry. */
type ContentOf = (
  kind: typeof RECORDS | typeof PENDING,
  address: ObjectAddress,
) => Promise<string | undefined>;

/** Walks a listing in step with another one. Callers must ask for keys in ascending order. */
class Alongside {
  readonly #listing: AsyncGenerator<Listed>;
  readonly #prefix: string;
  #current: Listed | undefined;
  #started = false;

  constructor(bucket: Bucket, prefix: string) {
    this.#listing = bucket.list(prefix);
    this.#prefix = prefix;
  }

  async find({ session, file }: ObjectAddress): Promise<Listed | undefined> {
    const key = `${this.#prefix}${session}/${file}`;
    const first = await this.#firstFrom(key);
    return first?.key === key ? first : undefined;
  }

  async hasSession(session: string): Promise<boolean> {
    const prefix = `${this.#prefix}${session}/`;
    return (await this.#firstFrom(prefix))?.key.startsWith(prefix) ?? false;
  }

  async #firstFrom(key: string): Promise<Listed | undefined> {
    while (!this.#started || (this.#current !== undefined && this.#current.key < key)) {
      this.#started = true;
      const next = await this.#listing.next();
      this.#current = next.done ? undefined : next.value;
    }
    return this.#current;
  }
}

export async function* allObjects(bucket: Bucket): AsyncGenerator<ObjectAddress> {
  for await (const { key } of bucket.list(RECORDS)) {
    const address = addressIn(key);
    if (address !== undefined) yield address;
  }
}

export async function* unusedObjects(
  bucket: Bucket,
  time: Date,
  isWanted: (address: ObjectAddress) => Promise<boolean>,
  passOver: PassOver,
): AsyncGenerator<ObjectAddress> {
  const isUnused = async (address: ObjectAddress) =>
    (await isWanted(address)) && !(await isMarkedSince(bucket, address, time));
  const uses = new Alongside(bucket, USES);
  for await (const { key, modified } of bucket.list(RECORDS)) {
    const address = addressIn(key);
    if (address === undefined) continue;
    const use = await uses.find(address);
    if (modified >= time || (use !== undefined && use.modified >= time)) continue;
    if (await orPassOver(passOver, () => isUnused(address))) yield address;
  }
}

/** Reads the marker itself: a page of a listing may be minutes old, because earlier objects were removed meanwhile. */
async function isMarkedSince(bucket: Bucket, address: ObjectAddress, time: Date): Promise<boolean> {
  const mark = await bucket.head(keyOf(USES, address));
  return mark !== undefined && mark.modified.getTime() + HEAD_PRECISION_MS > time.getTime();
}

async function orPassOver<T>(passOver: PassOver, step: () => Promise<T>): Promise<T | undefined> {
  try {
    return await step();
  } catch (error) {
    passOver(error);
    return undefined;
  }
}

/** Returns how many writes it removed. */
export async function removeLeftovers(
  bucket: Bucket,
  olderThan: Date,
  passOver: PassOver,
  contentOf: ContentOf,
): Promise<number> {
  let removed = 0;
  for await (const { key, uploadId, begun } of bucket.openUploads(CONTENT)) {
    if (begun >= olderThan) continue;
    await orPassOver(passOver, async () => {
      await bucket.abortUpload(key, uploadId);
      removed++;
    });
  }
  for await (const { key, modified } of bucket.list(PENDING)) {
    if (modified < olderThan) await orPassOver(passOver, () => bucket.delete(key));
  }
  removed += await removeNamelessContent(bucket, olderThan, passOver, contentOf);
  await removeLoneMarks(bucket, olderThan, passOver);
  return removed;
}

async function removeNamelessContent(
  bucket: Bucket,
  olderThan: Date,
  passOver: PassOver,
  contentOf: ContentOf,
): Promise<number> {
  const records = new Alongside(bucket, RECORDS);
  let removed = 0;
  let previous = "";
  for await (const { key, modified } of bucket.list(CONTENT)) {
    const address = addressIn(key);
    if (address === undefined) continue;
    const place = key.slice(0, key.lastIndexOf("/"));
    const isOnly = place !== previous;
    previous = place;
    const isNamed = (await records.find(address)) !== undefined;
    if (modified >= olderThan || (isNamed && isOnly)) continue;
    removed += (await orPassOver(passOver, () => removeUnnamed(bucket, address, olderThan, contentOf))) ?? 0;
  }
  return removed;
}

/** A commit creates the record before it removes the pending entry. Reading them in the opposite order misses neither. */
async function removeUnnamed(
  bucket: Bucket,
  address: ObjectAddress,
  olderThan: Date,
  contentOf: ContentOf,
): Promise<number> {
  const named = [await contentOf(PENDING, address), await contentOf(RECORDS, address)];
  let removed = 0;
  // An entry that cannot be read may name any of these bytes, so they stay as long as the entry does.
  if (named.includes("unknown")) return removed;
  for await (const { key, modified } of bucket.list(
    `${sessionPrefix(CONTENT, address.session)}${address.file}/`,
  )) {
    if (modified >= olderThan || named.includes(key.slice(key.lastIndexOf("/") + 1))) continue;
    await bucket.delete(key);
    removed++;
  }
  return removed;
}

/** Removes use markers and batch markers whose objects are gone, and probes that nobody removed. */
async function removeLoneMarks(bucket: Bucket, olderThan: Date, passOver: PassOver): Promise<void> {
  const remove = (key: string) => orPassOver(passOver, () => bucket.delete(key));
  const records = new Alongside(bucket, RECORDS);
  for await (const { key, modified } of bucket.list(USES)) {
    const address = addressIn(key);
    if (address === undefined || modified >= olderThan) continue;
    if ((await records.find(address)) === undefined) await remove(keyOf(USES, address));
  }
  const sessions = new Alongside(bucket, RECORDS);
  for await (const { key, modified } of bucket.list(BATCHES)) {
    if (modified >= olderThan) continue;
    if (!(await sessions.hasSession(key.slice(BATCHES.length)))) await remove(key);
  }
  for await (const { key, modified } of bucket.list(PROBES)) {
    if (modified < olderThan) await remove(key);
  }
}
