/**
 * The content of an object, or a range of it, as a stream. A full read is hashed on the way, and its last bytes are held back
 * until the hash is known to be right: a damaged object never looks complete. While its reader pauses, nothing is read ahead.
 */
import { createHash, type Hash } from "node:crypto";
import { Readable } from "node:stream";
import type { ObjectRecord } from "@svc/contracts";
import { type ByteRange, StoreError } from "./store.ts";

/** Approximate size of one read. */
export const CHUNK_BYTES = 256 * 1024;

export abstract class VerifiedStream extends Readable {
  /** Offset of the next byte; `end` is the offset after the last byte to read. */
  protected position: number;
  protected readonly end: number;
  readonly #etag: string;
  readonly #hash: Hash | undefined;

  constructor(record: ObjectRecord, range: ByteRange | undefined) {
    super({ highWaterMark: CHUNK_BYTES });
    this.position = range?.first ?? 0;
    this.end = range === undefined ? record.size : range.last + 1;
    this.#etag = record.etag;
    const whole = this.position === 0 && this.end === record.size;
    this.#hash = whole ? createHash("sha256") : undefined;
  }

  /** Reads one or more bytes from `position`, and none at or after `end`. */
  protected abstract chunk(): Promise<Buffer>;

  override _read(): void {
    this.#next().catch((error: unknown) => this.destroy(error as Error));
  }

  async #next(): Promise<void> {
    if (this.position < this.end) {
      const chunk = await this.chunk();
      this.position += chunk.length;
      this.#hash?.update(chunk);
      if (this.position === this.end) this.#verify();
      this.push(chunk);
    } else {
      // There is nothing to read, but the hash of an empty object is verified, too.
      this.#verify();
    }
    if (this.position >= this.end) this.push(null);
  }

  #verify(): void {
    if (this.#hash !== undefined && this.#hash.digest("hex") !== this.#etag) {
      throw new StoreError("damaged", "the content does not have the recorded hash");
    }
  }
}
