/**
 * The entries in the bucket: created once, never changed. If the response to a creation is lost, the entry may exist, so it is
 * looked up. Entries of a batch become visible when the marker of the batch exists.
 */
import { isDeepStrictEqual } from "node:util";
import { mapLimited } from "@svc/service-kit/map-limited";
import { type ObjectAddress, StoreError } from "../store.ts";
import type { Bucket } from "./bucket.ts";
import { decodeEntry, type Entry, encodeEntry } from "./entry.ts";
import {
  addressIn,
  batchKey,
  CONTENT,
  contentKey,
  keyOf,
  type PENDING,
  RECORDS,
  sessionPrefix,
} from "./keys.ts";

export const PARALLEL_REQUESTS = 16;

type Kind = typeof RECORDS | typeof PENDING;

export class Entries {
  readonly #bucket: Bucket;

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  /** Creates an entry. Returns undefined if the entry exists now, or the other entry that has its key. */
  async create(kind: Kind, entry: Entry): Promise<Entry | undefined> {
    const address = addressOf(entry);
    let outcome: "created" | "taken";
    try {
      outcome = await this.#bucket.create(keyOf(kind, address), encodeEntry(entry));
    } catch (error) {
      const found = await this.get(kind, address).catch(() => undefined);
      if (isDeepStrictEqual(found, entry)) return undefined;
      throw error;
    }
    if (outcome === "created") return undefined;
    const found = await this.get(kind, address);
    // A retry of our own request found the entry that it had created.
    return isDeepStrictEqual(found, entry) ? undefined : found;
  }

  /** Throws `not_found`, or `damaged`. */
  async get(kind: Kind, address: ObjectAddress): Promise<Entry> {
    return decodeEntry((await this.#bucket.text(keyOf(kind, address))).text, address);
  }

  /** False for an entry of a batch that is not committed. */
  async isVisible({ batch, record }: Entry): Promise<boolean> {
    return !batch || (await this.#bucket.head(batchKey(record.storage_session_id))) !== undefined;
  }

  /**
   * Creates the entries of a session and makes them visible together. After a failure none of them is visible. Entries that were
   * created stay without the marker, for a repeated commit or for the discard. Another commit of the session may be in progress.
   */
  async createAll(session: string, entries: readonly Entry[]): Promise<void> {
    await mapLimited(entries, PARALLEL_REQUESTS, async (entry) => {
      const found = await this.create(RECORDS, entry);
      if (found !== undefined) throw new StoreError("exists", "committing a session: it exists already");
    });
    if (entries.length > 1) await this.#mark(session);
  }

  async #mark(session: string): Promise<void> {
    try {
      await this.#bucket.create(batchKey(session), "");
    } catch (error) {
      const mark = await this.#bucket.head(batchKey(session)).catch(() => undefined);
      if (mark === undefined) throw error;
    }
  }

  /** Up to `limit` ids of files with an entry, in order. */
  async ids(session: string, limit: number): Promise<string[]> {
    const files: string[] = [];
    for await (const { key } of this.#bucket.list(sessionPrefix(RECORDS, session))) {
      const address = addressIn(key);
      if (address !== undefined) files.push(address.file);
      if (files.length >= limit) break;
    }
    return files;
  }

  /** Up to `limit` visible entries of a session whose content exists, in order of file id. */
  async list(session: string, limit: number): Promise<Entry[]> {
    const files = (await this.ids(session, limit)).map((file) => ({ session, file }));
    const sizes = await this.#contentSizes(session, files.at(-1));
    const entries = await mapLimited(files, PARALLEL_REQUESTS, (address) => this.#wholeEntry(address, sizes));
    const found = entries.filter((entry) => entry !== undefined);
    const batched = found.find(({ batch }) => batch);
    if (batched === undefined || (await this.isVisible(batched))) return found;
    return found.filter(({ batch }) => !batch);
  }

  /** Content sizes of a session by key, up to the content of the file `last`. */
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
      const entry = await this.get(RECORDS, address);
      return sizes.get(contentKey(address, entry.content)) === entry.record.size ? entry : undefined;
    } catch (error) {
      if (error instanceof StoreError && error.failure !== "unavailable") return undefined;
      throw error;
    }
  }
}

export function addressOf({ record }: Entry): ObjectAddress {
  return { session: record.storage_session_id, file: record.id };
}
