/** Object storage in a bucket of an S3 server. For the layout of the bucket see keys.ts. */
import { isDeepStrictEqual } from "node:util";
import type { ObjectRecord } from "@svc/contracts";
import { mapLimited } from "@svc/service-kit/map-limited";
import { committedBefore } from "../committed.ts";
import {
  type CommitAttributes,
  type Content,
  checkAddress,
  type ObjectAddress,
  type ObjectAttributes,
  type ObjectStore,
  type OpenObject,
  type PassOver,
  type PendingAttributes,
  passNothingOver,
  StoreError,
  type WriteLimits,
} from "../store.ts";
import { Turns } from "../turns.ts";
import { Bucket } from "./bucket.ts";
import { Check } from "./check.ts";
import type { S3Connection } from "./client.ts";
import { addressOf, Entries, PARALLEL_REQUESTS } from "./entries.ts";
import { decodeEntry, type Entry } from "./entry.ts";
import {
  addressIn,
  batchKey,
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
import { allObjects, removeLeftovers, unusedObjects } from "./sweep.ts";

export interface S3ObjectStoreOptions extends S3Connection {
  /** Shortest time between two recorded uses of an object, so that not every read causes a write. */
  useGranularityMs: number;
}

/** Stands for the namespace of pending objects; no real namespace is empty. */
const NO_NAMESPACE = "";

/**
 * - A write first stores the bytes under a key of their own. Then it creates the record under the object's key, on condition that
 *   the key is free (`If-None-Match: *`). Only the record makes the object visible, so an incomplete object never is.
 * - The record holds everything that is known about the object: size and hash are known only at the end of the content, and header
 *   values are too short for names and namespaces.
 * - A server that ignores the condition would let objects be replaced, so the store refuses it before the first write.
 * - If the response to the creation of a record is lost, the record may exist, and the store looks for it. If that fails, the bytes
 *   stay, so that a record that appears late is complete. The sweep removes bytes that no record names.
 * - A deletion removes the record first. Reads in progress in this process still finish; reads in other processes break off.
 * - One marker makes all objects of a commit visible together.
 */
export class S3ObjectStore implements ObjectStore {
  readonly #bucket: Bucket;
  readonly #entries: Entries;
  readonly #check: Check;
  readonly #sender: Sender;
  readonly #readers = new Readers();
  /** Queues the commits and discards of each pending session. */
  readonly #ends = new Turns();
  readonly #useGranularityMs: number;

  constructor(options: S3ObjectStoreOptions) {
    this.#bucket = new Bucket(options);
    this.#entries = new Entries(this.#bucket);
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
    const found = await this.#entries.create(RECORDS, entry);
    if (found === undefined) return entry.record;
    await this.#dropContent(entry);
    const { lastModified } = found.record;
    if (
      isDeepStrictEqual(found.record, { ...entry.record, lastModified }) &&
      (await this.#entries.isVisible(found))
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
    if ((await this.#entries.create(PENDING, entry)) === undefined) return entry.record;
    await this.#dropContent(entry);
    throw new StoreError("exists", "staging an object: it exists already");
  }

  /** Stores the bytes. They are not visible yet, because no record names them. */
  async #store(
    address: ObjectAddress,
    content: Content,
    attributes: ObjectAttributes,
    limits: WriteLimits,
  ): Promise<Entry> {
    checkAddress(address.session, address.file);
    const spool = await Spool.fill(content, limits);
    try {
      await limits.admit?.(spool.size);
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

  /** The sweep removes later what cannot be removed now. */
  async #dropContent(entry: Entry): Promise<void> {
    await this.#bucket.delete(contentKey(addressOf(entry), entry.content)).catch(() => undefined);
  }

  async commit(
    session: string,
    files: readonly string[],
    attributes: CommitAttributes,
    admit?: (records: readonly ObjectRecord[]) => Promise<void>,
  ): Promise<ObjectRecord[]> {
    return this.#ends.run(session, () =>
      this.#commitPending(session, files, attributes, admit).catch((error: unknown) =>
        committedBefore(this, session, files, attributes, error),
      ),
    );
  }

  async #commitPending(
    session: string,
    files: readonly string[],
    attributes: CommitAttributes,
    admit?: (records: readonly ObjectRecord[]) => Promise<void>,
  ): Promise<ObjectRecord[]> {
    const staged = await this.#staged(session);
    if (!files.every((file) => staged.includes(file))) {
      throw new StoreError("not_found", "committing a session: no such object");
    }
    // Records of these files may come from an earlier commit that broke off here.
    const wanted = new Set(files);
    if ((await this.#entries.ids(session, files.length + 1)).some((file) => !wanted.has(file))) {
      throw new StoreError("exists", "committing a session: it exists already");
    }
    const entries = await mapLimited(files, PARALLEL_REQUESTS, async (file) => {
      const entry = await this.#entries.get(PENDING, { session, file });
      return { ...entry, record: { ...entry.record, ...attributes }, batch: files.length > 1 };
    });
    await admit?.(entries.map(({ record }) => record));
    await this.#entries.createAll(session, entries);
    await mapLimited(staged, PARALLEL_REQUESTS, (file) =>
      wanted.has(file)
        ? this.#bucket.delete(keyOf(PENDING, { session, file }))
        : this.#dropPending({ session, file }),
    ).catch(() => undefined);
    return entries.map(({ record }) => record);
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
    const entry = await this.#entries.get(PENDING, address).catch(() => undefined);
    await this.#bucket.delete(keyOf(PENDING, address));
    if (entry === undefined || (await this.#isCommitted(address))) return;
    // The record of a commit that broke off before its marker, if there is one.
    await this.#bucket.delete(keyOf(RECORDS, address));
    await this.#dropContent(entry);
  }

  async #isCommitted(address: ObjectAddress): Promise<boolean> {
    try {
      return await this.#entries.isVisible(await this.#entries.get(RECORDS, address));
    } catch (error) {
      if (error instanceof StoreError && error.failure === "not_found") return false;
      throw error;
    }
  }

  async discard(session: string): Promise<void> {
    await this.#ends.run(session, async () => {
      const staged = await this.#staged(session);
      await mapLimited(staged, PARALLEL_REQUESTS, (file) => this.#dropPending({ session, file }));
    });
  }

  async open(address: ObjectAddress): Promise<OpenObject> {
    const { text, modified } = await this.#bucket.text(keyOf(RECORDS, address));
    const entry = decodeEntry(text, address);
    const { record } = entry;
    const key = contentKey(address, entry.content);
    const release = this.#readers.hold(key);
    try {
      const [visible, content] = await Promise.all([this.#entries.isVisible(entry), this.#bucket.head(key)]);
      if (!visible) throw new StoreError("not_found", "opening an object: its batch is not committed");
      if (content === undefined) {
        // Throws `not_found` if the object was deleted just now.
        await this.#entries.get(RECORDS, address);
        throw new StoreError("damaged", "the content is missing", undefined, record);
      }
      if (content.size !== record.size) {
        throw new StoreError("damaged", "the content does not have the recorded size", undefined, record);
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

  /** A use marker that races with a deletion may remain without its object. It makes nothing visible. */
  async #noteUse(address: ObjectAddress, stored: Date): Promise<void> {
    const isRecent = (time: Date) => Date.now() - time.getTime() < this.#useGranularityMs;
    if (isRecent(stored)) return;
    const mark = await this.#bucket.head(keyOf(USES, address));
    if (mark === undefined || !isRecent(mark.modified)) {
      await this.#bucket.put(keyOf(USES, address), Buffer.alloc(0));
    }
  }

  async delete(address: ObjectAddress): Promise<void> {
    const entry = await this.#entries.get(RECORDS, address).catch((error: unknown) => {
      if (error instanceof StoreError && error.failure === "damaged") return undefined;
      throw error;
    });
    await this.#bucket.delete(keyOf(RECORDS, address));
    // The object is gone. The sweep removes later what cannot be removed now.
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
    const entries = await this.#entries.list(session, limit);
    if (entries.length === 0) throw new StoreError("not_found", "listing a session: it is empty");
    return entries.map(({ record }) => record);
  }

  ids(session: string, limit: number): Promise<string[]> {
    return this.#entries.ids(session, limit);
  }

  addresses(): AsyncIterable<ObjectAddress> {
    return allObjects(this.#bucket);
  }

  unusedSince(
    time: Date,
    isWanted: (address: ObjectAddress) => Promise<boolean> = async () => true,
    passOver: PassOver = passNothingOver,
  ): AsyncIterable<ObjectAddress> {
    return unusedObjects(this.#bucket, time, isWanted, passOver);
  }

  removeLeftovers(olderThan: Date, passOver: PassOver = passNothingOver): Promise<number> {
    return removeLeftovers(this.#bucket, olderThan, passOver, async (kind, address) => {
      try {
        return (await this.#entries.get(kind, address)).content;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        if (error.failure === "not_found") return undefined;
        if (error.failure === "damaged") return "unknown";
        throw error;
      }
    });
  }

  async check(): Promise<void> {
    await this.#check.now();
  }
}
