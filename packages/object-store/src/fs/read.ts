/**
 * Reads objects: opens the file, finds its record, streams its content. A full read is hashed on the way, and its last bytes
 * are held back until the hash is known to be right: a damaged object never looks complete.
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { Readable } from "node:stream";
import type { ObjectRecord } from "@svc/contracts";
import { type ByteRange, type ObjectAddress, StoreError } from "../store.ts";
import { fsCall } from "./errors.ts";
import { decodeRecord, FOOTER_BYTES, recordLength } from "./trailer.ts";

/** One read of this size at the end of the file finds the record of nearly every object. */
const TAIL_BYTES = 4096;
const CHUNK_BYTES = 256 * 1024;

export interface OpenFile {
  file: FileHandle;
  record: ObjectRecord;
  modifiedMs: number;
}

/** Opens an object file and checks that it is whole by size. The caller closes it. */
export async function openObjectFile(path: string, address: ObjectAddress, flags = "r"): Promise<OpenFile> {
  return fsCall("opening an object", async () => {
    const file = await open(path, flags);
    try {
      const { size, mtimeMs } = await file.stat();
      let tail = await readExactly(file, Math.max(0, size - TAIL_BYTES), Math.min(size, TAIL_BYTES));
      const length = recordLength(tail.subarray(-FOOTER_BYTES));
      const trailer = length + FOOTER_BYTES;
      if (trailer > size) throw new StoreError("damaged", "the record is cut off");
      if (trailer > tail.length) tail = await readExactly(file, size - trailer, trailer);
      const json = tail.subarray(tail.length - trailer, tail.length - FOOTER_BYTES);
      return { file, record: decodeRecord(json, size, address), modifiedMs: mtimeMs };
    } catch (error) {
      await file.close();
      throw error;
    }
  });
}

/** Throws `damaged` when the file ends before. */
export async function readExactly(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) throw new StoreError("damaged", "bytes are missing");
    done += bytesRead;
  }
  return buffer;
}

/** The content of an open object, or a range of it. Takes the file over and closes it. */
export class ContentStream extends Readable {
  readonly #file: FileHandle;
  readonly #etag: string;
  readonly #hash: Hash | undefined;
  readonly #end: number;
  #position: number;

  constructor(file: FileHandle, record: ObjectRecord, range?: ByteRange) {
    super({ highWaterMark: CHUNK_BYTES, emitClose: true, autoDestroy: true });
    this.#file = file;
    this.#etag = record.etag;
    this.#position = range?.first ?? 0;
    this.#end = range === undefined ? record.size : range.last + 1;
    const whole = this.#position === 0 && this.#end === record.size;
    this.#hash = whole ? createHash("sha256") : undefined;
  }

  override _read(): void {
    this.#next().catch((error: unknown) => this.destroy(error as Error));
  }

  async #next(): Promise<void> {
    const length = Math.min(CHUNK_BYTES, this.#end - this.#position);
    if (length > 0) {
      const chunk = await fsCall("reading an object", () => readExactly(this.#file, this.#position, length));
      this.#position += length;
      this.#hash?.update(chunk);
      if (this.#position < this.#end) {
        this.push(chunk);
        return;
      }
      this.#verify();
      this.push(chunk);
    } else {
      this.#verify();
    }
    this.push(null);
  }

  #verify(): void {
    if (this.#hash !== undefined && this.#hash.digest("hex") !== this.#etag) {
      throw new StoreError("damaged", "the content does not have the recorded hash");
    }
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#file.close().then(
      () => callback(error),
      (closing: Error) => callback(error ?? closing),
    );
  }
}
