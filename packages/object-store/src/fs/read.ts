/** Reads objects: opens the file, finds its record, streams its content. */
import { type FileHandle, open } from "node:fs/promises";
import type { ObjectRecord } from "@svc/contracts";
import { type ByteRange, type ObjectAddress, StoreError } from "../store.ts";
import { CHUNK_BYTES, VerifiedStream } from "../verified-stream.ts";
import { fsCall } from "./errors.ts";
import { decodeRecord, FOOTER_BYTES, recordLength } from "./trailer.ts";

/** One read of this size at the end of the file finds the record of nearly every object. */
const TAIL_BYTES = 4096;

export interface OpenFile {
  file: FileHandle;
  record: ObjectRecord;
  modifiedMs: number;
  /** The whole content, if the file was read in one call. */
  content?: Buffer;
}

interface OpenOptions {
  flags?: string;
  /** A file of at most this many bytes is read in one call. */
  wholeUpTo?: number;
}

/** Opens an object file and checks its size against its record. The caller closes it. */
export async function openObjectFile(
  path: string,
  address: ObjectAddress,
  { flags = "r", wholeUpTo = TAIL_BYTES }: OpenOptions = {},
): Promise<OpenFile> {
  return fsCall("opening an object", async () => {
    const file = await open(path, flags);
    try {
      const { size, mtimeMs } = await file.stat();
      const tailBytes = size <= wholeUpTo ? size : Math.min(size, TAIL_BYTES);
      let tail = await readExactly(file, size - tailBytes, tailBytes);
      const length = recordLength(tail.subarray(-FOOTER_BYTES));
      const trailer = length + FOOTER_BYTES;
      if (trailer > size) throw new StoreError("damaged", "the record is cut off");
      if (trailer > tail.length) tail = await readExactly(file, size - trailer, trailer);
      const json = tail.subarray(tail.length - trailer, tail.length - FOOTER_BYTES);
      const record = decodeRecord(json, size, address);
      const content = tail.length === size ? { content: tail.subarray(0, record.size) } : {};
      return { file, record, modifiedMs: mtimeMs, ...content };
    } catch (error) {
      await file.close();
      throw error;
    }
  });
}

/** Throws `damaged` if the file ends before `length` bytes. */
export async function readExactly(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) throw new StoreError("damaged", "bytes are missing");
    done += bytesRead;
  }
  return buffer;
}

/** Streams the content of an open object, or a range of it. Owns the file and closes it. */
export class ContentStream extends VerifiedStream {
  readonly #file: FileHandle;
  readonly #content: Buffer | undefined;

  /** `content`: set if it was read together with the record. */
  constructor(file: FileHandle, record: ObjectRecord, range?: ByteRange, content?: Buffer) {
    super(record, range);
    this.#file = file;
    this.#content = content;
  }

  protected override async chunk(): Promise<Buffer> {
    if (this.#content !== undefined) return this.#content.subarray(this.position, this.end);
    const length = Math.min(CHUNK_BYTES, this.end - this.position);
    return fsCall("reading an object", () => readExactly(this.#file, this.position, length));
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#file.close().then(
      () => callback(error),
      (closing: Error) => callback(error ?? closing),
    );
  }
}
