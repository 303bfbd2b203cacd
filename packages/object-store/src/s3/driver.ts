/**
 * Object storage in a bucket of an S3 server. The layout is in keys.ts.
 *
 * - Bytes are stored first, under a key of their own; then the record is created under the object's key, on condition that
 *   the key is free (`If-None-Match: *`). The record is what makes the object visible, so no half object ever is.
 *   It holds everything that is known of the object, because size and hash are known only at the end of the content, and
 *   because header values are too short for names and namespaces.
 * - A server that ignores the condition is refused before the first write: it would let objects be replaced.
 * - A record whose creation was not answered may exist. It is looked for; when that is not possible the bytes stay, so that
 *   a record that appears late is complete. The sweep removes bytes that no record names.
 * - A deletion removes the record first. In this process reads that have begun end whole; elsewhere they are cut.
 * - Objects that are committed together become visible by one marker.
 */
import { isDeepStrictEqual } from "node:util";
import type { ObjectRecord } from "@svc/contracts";
import { mapLimited } from "../concurrency.ts";
import {
  type CommitAttributes,
  type Content,
  checkAddress,
  type ObjectAddress,
  type ObjectAttributes,
  type ObjectStore,
  type OpenObject,
  type PendingAttributes,
  StoreError,
  type WriteLimits,
} from "../store.ts";
import { Bucket } from "./bucket.ts";
import { Check } from "./check.ts";
import type { S3Connection } from "./client.ts";
import { decodeEntry, type Entry, encodeEntry } from "./entry.ts";
import {
  addressIn,
  batchKey,
  CONTENT,
  contentKey,
  freshNonce,
  keyOf,
  PENDING,
  RECORDS,
  sessionPrefix,
  USES,
} from "./keys.ts";
import { ContentStream } from "./read.ts";
import { Readers } from "./readers.ts";
import { Sender } from "./send.ts";
import { Spool } from "./spool.ts";
import { removeLeftovers, unusedObjects } from "./sweep.ts";

export interface S3ObjectStoreOptions extends S3Connection {
  /** A use is noted at most this often, so that not every read is a write. */
  useGranularityMs: number;
}

const PARALLEL_REQUESTS = 16;
/** Stands for the namespace of pending objects; no real namespace is empty. */
const NO_NAMESPACE = "";

type AddressedEntry = typeof RECORDS | typeof PENDING;

export class S3ObjectStore implements ObjectStore {
  readonly #bucket: Bucket;
  readonly #check: Check;
  readonly #sender: Sender;
  readonly #readers = new Readers();
  readonly #useGranularityMs: number;

  constructor(options: S3ObjectStoreOptions) {
    this.#bucket = new Bucket(options);
    this.#check = new Check(this.#bucket);
    this.#sender = new Sender(this.#bucket);
    this.#useGranularityMs = options.useGranularityMs;
  }

  async put(
    address: ObjectAddress,
    content: Content,
    attributes: ObjectAttributes,
    limits: WriteLimits,
  ): Promise<ObjectRecord> {
    const entry = await this.#store(address, content, attributes, limits);
    const found = await this.#publish(RECORDS, entry);
    if (found === undefined) return entry.record;
    await this.#dropContent(entry);
    const { lastModified } = found.record;
    if (
      isDeepStrictEqual(found.record, { ...entry.record, lastModified }) &&
      (await this.#isVisible(found))
    ) {
      return found.record;
    }
    throw new StoreError("exists", "storing an object: it exists already");
  }

  async stage(
    address: ObjectAddress,
    content: Content,
    attributes: PendingAttributes,
    limits: WriteLimits,
  ): Promise<Pick<ObjectRecord, "size" | "etag" | "lastModified">> {
    const pending = { ...attributes, namespace: NO_NAMESPACE, readOnly: false };
    const entry = await this.#store(address, content, pending, limits);
    if ((await this.#publish(PENDING, entry)) === undefined) return entry.record;
    await this.#dropContent(entry);
    throw new StoreError("exists", "staging an object: it exists already");
  }

  /** Stores the bytes; nothing shows them yet. */
  async #store(
    address: ObjectAddress,
    content: Content,
    attributes: ObjectAttributes,
    limits: WriteLimits,
  ): Promise<Entry> {
    checkAddress(address.session, address.file);
    const spool = await Spool.fill(content, limits);
    try {
      await this.#check.conditions();
      const nonce = freshNonce();
      await this.#sender.send(contentKey(address, nonce), spool);
      const record: ObjectRecord = {
        id: address.file,
        storage_session_id: address.session,
        ...attributes,
        size: spool.size,
        etag: spool.etag,
        lastModified: new Date().toISOString(),
      };
      return { format: 1, record, content: nonce, batch: false };
    } finally {
      await spool.close();
    }
  }

  /** Creates a record. Answers undefined when it is there now, or the one that has its place. */
  async #publish(kind: AddressedEntry, entry: Entry): Promise<Entry | undefined> {
    const address = addressOf(entry);
    let outcome: "created" | "taken";
    try {
      outcome = await this.#bucket.create(keyOf(kind, address), encodeEntry(entry));
    } catch (error) {
      const found = await this.#entry(kind, address).catch(() => undefined);
      if (isDeepStrictEqual(found, entry)) return undefined;
      throw error;
    }
    if (outcome === "created") return undefined;
    const found = await this.#entry(kind, address);
    // A repeated request of our own.
    return isDeepStrictEqual(found, entry) ? undefined : found;
  }

  async #entry(kind: AddressedEntry, address: ObjectAddress): Promise<Entry> {
    return decodeEntry((await this.#bucket.text(keyOf(kind, address))).text, address);
  }

  async #isVisible({ batch, record }: Entry): Promise<boolean> {
    return !batch || (await this.#bucket.head(batchKey(record.storage_session_id))) !== undefined;
  }

  /** The sweep takes what cannot be removed now. */
  async #dropContent(entry: Entry): Promise<void> {
    await this.#bucket.delete(contentKey(addressOf(entry), entry.content)).catch(() => undefined);
  }

  async commit(
    session: string,
    files: readonly string[],
    attributes: CommitAttributes,
  ): Promise<ObjectRecord[]> {
    const staged = await this.#staged(session);
    if (!files.every((file) => staged.includes(file))) {
      throw new StoreError("not_found", "committing a session: no such object");
    }
    if (!(await this.#bucket.isEmpty(sessionPrefix(RECORDS, session)))) {
      throw new StoreError("exists", "committing a session: it exists already");
    }
    const entries = await mapLimited(files, PARALLEL_REQUESTS, async (file) => {
      const entry = await this.#entry(PENDING, { session, file });
      return { ...entry, record: { ...entry.record, ...attributes }, batch: files.length > 1 };
    });
    await this.#publishAll(session, entries);
    const wanted = new Set(files);
    await mapLimited(staged, PARALLEL_REQUESTS, (file) =>
      wanted.has(file)
        ? this.#bucket.delete(keyOf(PENDING, { session, file }))
        : this.#dropPending({ session, file }),
    ).catch(() => undefined);
    return entries.map(({ record }) => record);
  }

  async #publishAll(session: string, entries: readonly Entry[]): Promise<void> {
    const published: Entry[] = [];
    try {
      await mapLimited(entries, PARALLEL_REQUESTS, async (entry) => {
        const found = await this.#publish(RECORDS, entry);
        if (found !== undefined) throw new StoreError("exists", "committing a session: it exists already");
        published.push(entry);
      });
      if (entries.length > 1) await this.#bucket.create(batchKey(session), "");
    } catch (error) {
      // Without the marker nobody sees them. They are removed so that the session can be committed again.
      await mapLimited(published, PARALLEL_REQUESTS, (entry) =>
        this.#bucket.delete(keyOf(RECORDS, addressOf(entry))),
      ).catch(() => undefined);
      throw error;
    }
  }

  async #staged(session: string): Promise<string[]> {
    const files: string[] = [];
    for await (const { key } of this.#bucket.list(sessionPrefix(PENDING, session))) {
      const address = addressIn(key);
      if (address !== undefined) files.push(address.file);
    }
    return files;
  }

  async #dropPending(address: ObjectAddress): Promise<void> {
    const entry = await this.#entry(PENDING, address).catch(() => undefined);
    await this.#bucket.delete(keyOf(PENDING, address));
    if (entry !== undefined) await this.#dropContent(entry);
  }

  async discard(session: string): Promise<void> {
    const staged = await this.#staged(session);
    await mapLimited(staged, PARALLEL_REQUESTS, (file) => this.#dropPending({ session, file }));
  }

  async open(address: ObjectAddress): Promise<OpenObject> {
    const { text, modified } = await this.#bucket.text(keyOf(RECORDS, address));
    const entry = decodeEntry(text, address);
    const { record } = entry;
    const key = contentKey(address, entry.content);
    const release = this.#readers.hold(key);
    try {
      const [visible, content] = await Promise.all([this.#isVisible(entry), this.#bucket.head(key)]);
      if (!visible) throw new StoreError("not_found", "opening an object: its batch is not committed");
      if (content === undefined) {
        // Unless it was deleted just now, in which case this throws `not_found`.
        await this.#entry(RECORDS, address);
        throw new StoreError("damaged", "the content is missing");
      }
      if (content.size !== record.size) {
        throw new StoreError("damaged", "the content does not have the recorded size");
      }
    } catch (error) {
      release();
      throw error;
    }
    return {
      record,
      read: (range) => new ContentStream(this.#bucket, key, record, range, release),
      close: async () => release(),
      noteUse: () => this.#noteUse(address, modified).catch(() => undefined),
    };
  }

  /** A mark of a use that meets a deletion stays behind alone, which shows nothing. */
  async #noteUse(address: ObjectAddress, stored: Date): Promise<void> {
    const isRecent = (time: Date) => Date.now() - time.getTime() < this.#useGranularityMs;
    if (isRecent(stored)) return;
    const mark = await this.#bucket.head(keyOf(USES, address));
    if (mark === undefined || !isRecent(mark.modified)) {
      await this.#bucket.put(keyOf(USES, address), Buffer.alloc(0));
    }
  }

  async delete(address: ObjectAddress): Promise<void> {
    const entry = await this.#entry(RECORDS, address).catch((error: unknown) => {
      if (error instanceof StoreError && error.failure === "damaged") return undefined;
      throw error;
    });
    await this.#bucket.delete(keyOf(RECORDS, address));
    // The object is gone. What cannot be removed now is the sweep's.
    await Promise.all([
      this.#bucket.delete(keyOf(USES, address)),
      entry === undefined ? undefined : this.#deleteContent(entry),
      entry?.batch ? this.#deleteMarkerOfLast(address.session) : undefined,
    ]).catch(() => undefined);
  }

  async #deleteContent(entry: Entry): Promise<void> {
    const drop = () => this.#dropContent(entry);
    if (!this.#readers.afterLast(contentKey(addressOf(entry), entry.content), drop)) await drop();
  }

  async #deleteMarkerOfLast(session: string): Promise<void> {
    if (await this.#bucket.isEmpty(sessionPrefix(RECORDS, session))) {
      await this.#bucket.delete(batchKey(session));
    }
  }

  async list(session: string, limit: number): Promise<ObjectRecord[]> {
    const files: ObjectAddress[] = [];
    for await (const { key } of this.#bucket.list(sessionPrefix(RECORDS, session))) {
      const address = addressIn(key);
      if (address !== undefined) files.push(address);
      if (files.length >= limit) break;
    }
    const sizes = await this.#contentSizes(session, files.at(-1));
    const entries = await mapLimited(files, PARALLEL_REQUESTS, (address) => this.#wholeEntry(address, sizes));
    const found = entries.filter((entry) => entry !== undefined);
    const batched = found.find(({ batch }) => batch);
    const shown =
      batched === undefined || (await this.#isVisible(batched)) ? found : found.filter(({ batch }) => !batch);
    if (shown.length === 0) throw new StoreError("not_found", "listing a session: it is empty");
    return shown.map(({ record }) => record);
  }

  /** Sizes of the content of a session by key, up to the content of a file. */
  async #contentSizes(
    session: string,
    last: ObjectAddress | undefined,
  ): Promise<ReadonlyMap<string, number>> {
    const sizes = new Map<string, number>();
    if (last === undefined) return sizes;
    for await (const { key, size } of this.#bucket.list(sessionPrefix(CONTENT, session))) {
      if ((addressIn(key)?.file ?? "") > last.file) break;
      sizes.set(key, size);
    }
    return sizes;
  }

  async #wholeEntry(address: ObjectAddress, sizes: ReadonlyMap<string, number>): Promise<Entry | undefined> {
    try {
      const entry = await this.#entry(RECORDS, address);
      return sizes.get(contentKey(address, entry.content)) === entry.record.size ? entry : undefined;
    } catch (error) {
      if (error instanceof StoreError && error.failure !== "unavailable") return undefined;
      throw error;
    }
  }

  unusedSince(time: Date): AsyncIterable<ObjectAddress> {
    return unusedObjects(this.#bucket, time);
  }

  removeLeftovers(olderThan: Date): Promise<number> {
    return removeLeftovers(this.#bucket, olderThan, async (kind, address) => {
      try {
        return (await this.#entry(kind, address)).content;
      } catch (error) {
        if (error instanceof StoreError && error.failure === "not_found") return undefined;
        throw error;
      }
    });
  }

  async check(): Promise<void> {
    await this.#check.now();
  }
}

function addressOf({ record }: Entry): ObjectAddress {
  return { session: record.storage_session_id, file: record.id };
}
