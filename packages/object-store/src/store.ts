/** The interface of every object storage driver. Only the file server uses it. Every failure is a StoreError. */
import type { Readable } from "node:stream";
import { isId, type ObjectRecord } from "@svc/contracts";

export interface ObjectAddress {
  session: string;
  file: string;
}

/** Attributes that the writer sets. The store itself sets size, etag and time. */
export interface ObjectAttributes {
  namespace: string;
  filename: string;
  contentType: string;
  readOnly: boolean;
  origin?: ObjectRecord["origin"];
  account?: string;
}

export type PendingAttributes = Pick<ObjectAttributes, "filename" | "contentType">;
export type CommitAttributes = Pick<ObjectAttributes, "namespace" | "readOnly" | "origin" | "account">;
export type Content = AsyncIterable<Uint8Array>;

export interface WriteLimits {
  /** The store rejects content with `too_large` as soon as it exceeds this many bytes. */
  maxBytes: number;
  /** Called with the total size after all content has arrived and before the object is visible. If it throws, the write is aborted. */
  admit?: (bytes: number) => Promise<void>;
}

/** First and last byte, both inclusive, both inside the content. */
export interface ByteRange {
  first: number;
  last: number;
}

/** An open object. Its reads return the same content even if the object is deleted meanwhile. */
export interface OpenObject {
  readonly record: ObjectRecord;
  /**
   * Streams the bytes; call it once. If bytes are missing, or a full read does not match the recorded hash, the stream fails
   * before it emits its last bytes. The object closes when the stream ends or is destroyed.
   */
  read: (range?: ByteRange) => Readable;
  /** Records a use, which protects the object from the sweep. Never fails. */
  noteUse: () => Promise<void>;
  /** Releases an object that is not read. */
  close: () => Promise<void>;
}

/** Receives an error that a walk meets in one session. The walk then continues with the next session, unless this throws. */
export type PassOver = (error: unknown) => void;

export function passNothingOver(error: unknown): never {
  throw error;
}

/**
 * - Exactly one pair of ids (storage session, file) addresses an object. There are no prefixes and no patterns.
 * - An object never changes and is never overwritten. Storing the same object again, for example after a lost response, succeeds
 *   and changes nothing.
 * - An object becomes visible in one step, with all its bytes and its record, after they are safe from a power failure. A write
 *   that fails or is aborted leaves nothing.
 * - Pending objects belong to a storage session that is still being created. Only `commit` and `discard` see them.
 * - Content arrives and leaves as a stream with back-pressure. If the content throws, the write is aborted.
 * - The receiver of a chunk of content owns it. A store may free the memory of a chunk once it has the bytes.
 */
export interface ObjectStore {
  put: (
    address: ObjectAddress,
    content: Content,
    attributes: ObjectAttributes,
    limits: WriteLimits,
  ) => Promise<ObjectRecord>;

  /** Stores content as pending; its namespace is not known yet. */
  stage: (
    address: ObjectAddress,
    content: Content,
    attributes: PendingAttributes,
    limits: WriteLimits,
  ) => Promise<Pick<ObjectRecord, "size" | "etag" | "lastModified">>;

  /**
   * Makes the named pending objects the objects of their new session, and drops the session's other pending objects. After a
   * failure none of them is visible. Returns the records in the order of `files`. Calls `admit` with the records before any object
   * is visible; if it throws, the commit is aborted. Repeating the same commit, for example after a lost response, succeeds and
   * changes nothing.
   */
  commit: (
    session: string,
    files: readonly string[],
    attributes: CommitAttributes,
    admit?: (records: readonly ObjectRecord[]) => Promise<void>,
  ) => Promise<ObjectRecord[]>;

  /** Drops all pending objects of a session, after any commit in progress. Committed objects stay. */
  discard: (session: string) => Promise<void>;

  /** Opens an object after checking that all its bytes are present. */
  open: (address: ObjectAddress) => Promise<OpenObject>;

  delete: (address: ObjectAddress) => Promise<void>;

  /** Up to `limit` records of a session, in order of file id. Damaged objects are left out. */
  list: (session: string, limit: number) => Promise<ObjectRecord[]>;

  /** Up to `limit` file ids of a session, in any order. Some of the objects may not be visible yet, or no longer. */
  ids: (session: string, limit: number) => Promise<string[]>;

  /** All objects, and some that are not visible yet, or no longer. */
  addresses: (passOver?: PassOver) => AsyncIterable<ObjectAddress>;

  /**
   * Objects that `isWanted` accepts and that were neither stored nor used since `time`. A walk takes long, so the store checks the
   * last use of an object once more right before it yields the object.
   */
  unusedSince: (
    time: Date,
    isWanted?: (address: ObjectAddress) => Promise<boolean>,
    passOver?: PassOver,
  ) => AsyncIterable<ObjectAddress>;

  /** Removes what aborted writes and abandoned sessions left before `olderThan`; keeps anything newer. */
  removeLeftovers: (olderThan: Date, passOver?: PassOver) => Promise<number>;

  /** Throws unless the store is writable now or was a few seconds ago. */
  check: () => Promise<void>;
}

export type StoreFailure = "not_found" | "exists" | "too_large" | "damaged" | "unavailable";

export class StoreError extends Error {
  readonly failure: StoreFailure;
  /** Set for a damaged object whose record is intact. */
  readonly record: ObjectRecord | undefined;

  constructor(failure: StoreFailure, message: string, cause?: unknown, record?: ObjectRecord) {
    super(message, { cause });
    this.name = "StoreError";
    this.failure = failure;
    this.record = record;
  }
}

/** Drivers check the form of ids again, because only that form keeps an id from acting as a path. */
export function checkAddress(...ids: readonly string[]): void {
  if (!ids.every(isId)) throw new StoreError("not_found", "not the address of an object");
}
