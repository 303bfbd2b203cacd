/**
 * What every driver of object storage offers. Only the file server uses it.
 *
 * - An object is addressed by exactly one (storage session, file) pair of ids; there are no prefixes and no patterns.
 * - An object is never changed and never overwritten; storing the same object again, as after a lost answer, succeeds and
 *   changes nothing. It becomes visible at once, with all its bytes and its record, after
 *   they are safe from a power failure; a write that fails or is broken off leaves nothing.
 * - Pending objects belong to a storage session that is still being made. Nothing but `commit` and `discard` sees them.
 * - Content arrives and leaves as a stream with back-pressure. Content that throws breaks the write off. The chunks of content
 *   belong to who receives them: a store may give their memory back once it has their bytes.
 * - Every failure is a StoreError.
 */
import type { Readable } from "node:stream";
import { isId, type ObjectRecord } from "@svc/contracts";

export interface ObjectAddress {
  session: string;
  file: string;
}

/** What the writer says of an object; size, etag and time are the store's own. */
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
  /** Content above this many bytes is refused with `too_large` as soon as it is seen. */
  maxBytes: number;
  /** Called with the size when all content is there, before anything shows the object. What it throws breaks the write off. */
  admit?: (bytes: number) => Promise<void>;
}

/** First and last byte, both inclusive, both inside the content. */
export interface ByteRange {
  first: number;
  last: number;
}

/** An object held open: what it reads stays the same even when the object is deleted meanwhile. */
export interface OpenObject {
  readonly record: ObjectRecord;
  /**
   * The bytes, once. The stream ends with an error, before its last bytes are out, when bytes are missing or when a full
   * read does not have the recorded hash. The object is closed when the stream ends or is destroyed.
   */
  read: (range?: ByteRange) => Readable;
  /** Notes that the object is in use, which keeps it from being swept. Never fails. */
  noteUse: () => Promise<void>;
  /** For objects that are not read. */
  close: () => Promise<void>;
}

/** Takes what a walk fails at in one session; the walk goes on behind it, unless this throws. */
export type PassOver = (error: unknown) => void;

export function passNothingOver(error: unknown): never {
  throw error;
}

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
   * Makes the named pending objects the objects of their new session and drops its other pending ones. After a failure
   * none of them is visible. Records come in the order of `files`. `admit` is called with them before any is visible; what it
   * throws breaks the commit off. The same commit again, as after a lost answer, succeeds and changes nothing.
   */
  commit: (
    session: string,
    files: readonly string[],
    attributes: CommitAttributes,
    admit?: (records: readonly ObjectRecord[]) => Promise<void>,
  ) => Promise<ObjectRecord[]>;

  /** Drops all pending objects of a session, after a commit that is under way. What was committed stays. */
  discard: (session: string) => Promise<void>;

  /** Opens an object whose bytes are all there. */
  open: (address: ObjectAddress) => Promise<OpenObject>;

  delete: (address: ObjectAddress) => Promise<void>;

  /** Up to `limit` records of a session, by file id. Damaged objects are left out. */
  list: (session: string, limit: number) => Promise<ObjectRecord[]>;

  /** Up to `limit` file ids of a session, in any order; some may not be visible yet or any more. */
  ids: (session: string, limit: number) => Promise<string[]>;

  /** All objects, and some that are not visible yet or any more. */
  addresses: (passOver?: PassOver) => AsyncIterable<ObjectAddress>;

  /**
   * Objects that were neither stored nor used since then, of those that are wanted. A walk takes long, so the last use of an object
   * is looked at once more right before it is named.
   */
  unusedSince: (
    time: Date,
    isWanted?: (address: ObjectAddress) => Promise<boolean>,
    passOver?: PassOver,
  ) => AsyncIterable<ObjectAddress>;

  /** Removes what broken-off writes and abandoned sessions left behind before this time; keeps anything younger. */
  removeLeftovers: (olderThan: Date, passOver?: PassOver) => Promise<number>;

  /** Throws unless the store can be written, or could be a few seconds ago. */
  check: () => Promise<void>;
}

export type StoreFailure = "not_found" | "exists" | "too_large" | "damaged" | "unavailable";

export class StoreError extends Error {
  readonly failure: StoreFailure;
  /** Of a damaged object whose record is whole. */
  readonly record: ObjectRecord | undefined;

  constructor(failure: StoreFailure, message: string, cause?: unknown, record?: ObjectRecord) {
    super(message, { cause });
    this.name = "StoreError";
    this.failure = failure;
    this.record = record;
  }
}

/** Drivers check the form of ids again: it is what keeps an id from being a path. */
export function checkAddress(...ids: readonly string[]): void {
  if (!ids.every(isId)) throw new StoreError("not_found", "not the address of an object");
}
