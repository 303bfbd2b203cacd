/**
 * Object storage in a directory of one file system. For the layout see layout.ts, for the format of an object file trailer.ts.
 * Safety: an object file is complete and synced before a link or rename makes it visible; then the directory is synced. A link
 * never replaces an existing object. The directory belongs to the store alone; several processes may share it.
 */
import { type FileHandle, link, open, readdir, rename, rm, rmdir, stat, unlink } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { ObjectRecord } from "@svc/contracts";
import { mapLimited } from "@svc/service-kit/map-limited";
import { committedBefore } from "../committed.ts";
import {
  type CommitAttributes,
  type Content,
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
import { usableFor } from "../usable.ts";
import { fsCall, hasCode } from "./errors.ts";
import { ensureDirectory, Layout, syncDirectory } from "./layout.ts";
import { ContentStream, openObjectFile } from "./read.ts";
import { allObjects, removeLeftovers, unusedObjects } from "./sweep.ts";
import { encodeTrailer } from "./trailer.ts";
import { writeAll, writeContent } from "./write.ts";

export interface FsObjectStoreOptions {
  root: string;
  /** Shortest time between two recorded uses of an object, so that not every read causes a write. */
  useGranularityMs: number;
}

const FILE_MODE = 0o600;
const PARALLEL_FILES = 8;
/** Object files up to this size are read with one call. */
const SMALL_BYTES = 64 * 1024;
/** How long a successful write probe stays valid. */
const GOOD_FOR_MS = 1000;
/** The link is tried again: deleting the last object of a session may remove its directory between its creation and the link. */
const LINK_ATTEMPTS = 5;
/** Stands for the namespace of pending objects; no real namespace is empty. */
const NO_NAMESPACE = "";

export class FsObjectStore implements ObjectStore {
  readonly #layout: Layout;
  readonly #useGranularityMs: number;
  /** Queues the commits and discards of each pending session. */
  readonly #ends = new Turns();
  readonly #check = usableFor(GOOD_FOR_MS, () => this.#probe());

  private constructor(options: FsObjectStoreOptions) {
    this.#layout = new Layout(options.root);
    this.#useGranularityMs = options.useGranularityMs;
  }

  static async create(options: FsObjectStoreOptions): Promise<FsObjectStore> {
    const store = new FsObjectStore(options);
    await fsCall("preparing the store", () => store.#layout.create());
    return store;
  }

  async put(
    address: ObjectAddress,
    content: Content,
    attributes: ObjectAttributes,
    limits: WriteLimits,
  ): Promise<ObjectRecord> {
    const target = this.#layout.object(address);
    const temporary = this.#layout.fresh();
    try {
      const record = await writeObject(temporary, address, content, attributes, limits, { sync: true });
      try {
        await fsCall("storing an object", () => this.#link(temporary, target, address.session));
        return record;
      } catch (error) {
        if (!(error instanceof StoreError && error.failure === "exists")) throw error;
        return await this.#repeated(address, record, error);
      }
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Returns the record of the existing object if it is the same as `wanted`. Otherwise throws `error`. */
  async #repeated(address: ObjectAddress, wanted: ObjectRecord, error: StoreError): Promise<ObjectRecord> {
    const found = await this.#listed(address);
    if (found === undefined || !isDeepStrictEqual(found, { ...wanted, lastModified: found.lastModified })) {
      throw error;
    }
    // The earlier writer may have stopped before this sync.
    await fsCall("storing an object", () => syncDirectory(this.#layout.session(address.session)));
    return found;
  }

  async #link(temporary: string, target: string, session: string): Promise<void> {
    const directory = this.#layout.session(session);
    for (let attempt = 1; ; attempt++) {
      const made = await ensureDirectory(directory);
      try {
        await link(temporary, target);
      } catch (error) {
        if (hasCode(error, "ENOENT") && attempt < LINK_ATTEMPTS) continue;
        throw error;
      }
      try {
        await Promise.all([
          syncDirectory(directory),
          made ? syncDirectory(this.#layout.sessions) : undefined,
        ]);
        return;
      } catch (error) {
        await rm(target, { force: true });
        throw error;
      }
    }
  }

  async stage(
    address: ObjectAddress,
    content: Content,
    attributes: PendingAttributes,
    limits: WriteLimits,
  ): Promise<Pick<ObjectRecord, "size" | "etag" | "lastModified">> {
    const target = this.#layout.pendingObject(address);
    await fsCall("preparing a session", () => ensureDirectory(this.#layout.pendingSession(address.session)));
    const pending = { ...attributes, namespace: NO_NAMESPACE, readOnly: false };
    return writeObject(target, address, content, pending, limits, {
      sync: false,
      // A concurrent commit of the other files may have moved the broken file along.
      abandon: async (file) => {
        for (const path of [target, this.#layout.object(address)]) await removeWhere(path, file);
      },
    });
  }

  async commit(
    session: string,
    files: readonly string[],
    attributes: CommitAttributes,
    admit?: (records: readonly ObjectRecord[]) => Promise<void>,
  ): Promise<ObjectRecord[]> {
    return this.#ends.run(session, async () => {
      try {
        return await this.#commitPending(session, files, attributes, admit);
      } catch (error) {
        const records = await committedBefore(this, session, files, attributes, error);
        // The earlier writer may have stopped before this sync.
        await fsCall("committing a session", () => syncDirectory(this.#layout.sessions));
        return records;
      }
    });
  }

  async #commitPending(
    session: string,
    files: readonly string[],
    attributes: CommitAttributes,
    admit?: (records: readonly ObjectRecord[]) => Promise<void>,
  ): Promise<ObjectRecord[]> {
    const directory = this.#layout.pendingSession(session);
    const records = await fsCall("preparing a commit", async () => {
      const wanted = new Set(files);
      for (const name of await readdir(directory)) {
        if (!wanted.has(name)) await rm(this.#layout.pendingObject({ session, file: name }), { force: true });
      }
      return mapLimited(files, PARALLEL_FILES, (file) => this.#finish({ session, file }, attributes));
    });
    await admit?.(records);
    return fsCall("committing a session", async () => {
      await syncDirectory(directory);
      await rename(directory, this.#layout.session(session));
      await syncDirectory(this.#layout.sessions);
      return records;
    });
  }

  /** Gives a pending object its final record, which is longer. That of an object which another commit has just shown stays as it is. */
  async #finish(address: ObjectAddress, attributes: CommitAttributes): Promise<ObjectRecord> {
    const opened = await openObjectFile(this.#layout.pendingObject(address), address, { flags: "r+" });
    try {
      const record = { ...opened.record, ...attributes };
      const trailer = encodeTrailer(record);
      const end = record.size + trailer.length;
      await writeAll(opened.file, [trailer], record.size);
      await opened.file.truncate(end);
      await opened.file.sync();
      return record;
    } finally {
      await opened.file.close();
    }
  }

  async discard(session: string): Promise<void> {
    const directory = this.#layout.pendingSession(session);
    await this.#ends.run(session, () =>
      fsCall("discarding a session", () => rm(directory, { recursive: true, force: true })),
    );
  }

  async open(address: ObjectAddress): Promise<OpenObject> {
    const path = this.#layout.object(address);
    const { file, record, modifiedMs, content } = await openObjectFile(path, address, {
      wholeUpTo: SMALL_BYTES,
    });
    return {
      record,
      read: (range) => new ContentStream(file, record, range, content),
      close: () => file.close(),
      noteUse: async () => {
        const now = new Date();
        if (now.getTime() - modifiedMs < this.#useGranularityMs) return;
        await file.utimes(now, now).catch(() => undefined);
      },
    };
  }

  async delete(address: ObjectAddress): Promise<void> {
    const directory = this.#layout.session(address.session);
    await fsCall("deleting an object", async () => {
      await unlink(this.#layout.object(address));
      try {
        await syncDirectory(directory);
        await rmdir(directory);
      } catch (error) {
        if (!hasCode(error, "ENOTEMPTY", "EEXIST", "ENOENT")) throw error;
      }
    });
  }

  async list(session: string, limit: number): Promise<ObjectRecord[]> {
    const names = await fsCall("listing a session", () => readdir(this.#layout.session(session)));
    const files = names.sort().slice(0, limit);
    const records = await mapLimited(files, PARALLEL_FILES, (file) => this.#listed({ session, file }));
    return records.filter((record) => record !== undefined);
  }

  async #listed(address: ObjectAddress): Promise<ObjectRecord | undefined> {
    try {
      const { file, record } = await openObjectFile(this.#layout.object(address), address);
      await file.close();
      return record;
    } catch (error) {
      if (error instanceof StoreError && error.failure !== "unavailable") return undefined;
      throw error;
    }
  }

  async ids(session: string, limit: number): Promise<string[]> {
    const names = await fsCall("listing a session", () => readdir(this.#layout.session(session)));
    return names.slice(0, limit);
  }

  addresses(passOver: PassOver = passNothingOver): AsyncIterable<ObjectAddress> {
    return allObjects(this.#layout, passOver);
  }

  unusedSince(
    time: Date,
    isWanted: (address: ObjectAddress) => Promise<boolean> = async () => true,
    passOver: PassOver = passNothingOver,
  ): AsyncIterable<ObjectAddress> {
    return unusedObjects(this.#layout, time, isWanted, passOver);
  }

  removeLeftovers(olderThan: Date, passOver: PassOver = passNothingOver): Promise<number> {
    return removeLeftovers(this.#layout, olderThan, passOver);
  }

  async check(): Promise<void> {
    await this.#check();
  }

  async #probe(): Promise<void> {
    const probe = this.#layout.fresh();
    await fsCall("writing to the store", async () => {
      const file = await open(probe, "wx", FILE_MODE);
      try {
        await file.write("probe");
      } finally {
        await file.close();
        await rm(probe, { force: true });
      }
    });
  }
}

/** Writes a new object file. A failed write calls `abandon`. Errors that the content throws pass through unchanged. */
async function writeObject(
  path: string,
  address: ObjectAddress,
  content: Content,
  attributes: ObjectAttributes,
  limits: WriteLimits,
  { sync, abandon }: { sync: boolean; abandon?: (file: FileHandle) => Promise<void> },
): Promise<ObjectRecord> {
  const file = await fsCall("creating an object file", () => open(path, "wx", FILE_MODE));
  try {
    const { size, etag } = await writeContent(file, content, limits);
    await limits.admit?.(size);
    const record: ObjectRecord = {
      id: address.file,
      storage_session_id: address.session,
      ...attributes,
      size,
      etag,
      lastModified: new Date().toISOString(),
    };
    await fsCall("writing an object file", async () => {
      await writeAll(file, [encodeTrailer(record)], size);
      if (sync) await file.sync();
    });
    return record;
  } catch (error) {
    await abandon?.(file);
    throw error;
  } finally {
    await file.close();
  }
}

/** Removes `path` if it is this open file. Another file at the path stays: it may be a stored object. */
async function removeWhere(path: string, file: FileHandle): Promise<void> {
  const [own, found] = await Promise.all([
    file.stat({ bigint: true }),
    stat(path, { bigint: true }).catch(() => undefined),
  ]);
  if (found?.ino === own.ino && found.dev === own.dev) await rm(path, { force: true });
}
