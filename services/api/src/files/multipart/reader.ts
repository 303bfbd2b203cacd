/**
 * Reads multipart/form-data part by part, and pulls from its source no more than the consumer asks for. Between two parts it holds at
 * most one chunk. A form that violates the grammar or ends early is refused, not repaired. No library does this: busboy and similar
 * ones skip or repair parts that they cannot read and hide raw headers; others hold whole parts in memory.
 */
import { invalidMultipart } from "./invalid.ts";
import { type PartHeaders, parsePartHeaders } from "./part-headers.ts";

export interface ChunkSource {
  next: () => Promise<Buffer | undefined>;
}

export interface Part extends PartHeaders {
  /** The bytes, to be read once and before the next part is requested. Unread bytes are then skipped. */
  body: AsyncIterable<Buffer>;
}

const CRLF = Buffer.from("\r\n");
const HEADERS_END = Buffer.from("\r\n\r\n");
/** A file name of 512 characters, sent both in UTF-8 and percent-encoded, needs half of this. */
const MAX_HEADERS_BYTES = 16 * 1024;
const MAX_PADDING_BYTES = 256;
const CR = 0x0d;

export class MultipartReader {
  readonly #source: ChunkSource;
  readonly #delimiter: Buffer;
  /** Bytes read but not consumed. The first delimiter has no line break before it, so the buffer starts with one. */
  #buffer: Buffer = CRLF;
  /** Before the first delimiter the reader is in the preamble, which is skipped like a body. */
  #inBody = true;
  #finished = false;
  #part = 0;

  constructor(source: ChunkSource, boundary: string) {
    this.#source = source;
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  /** The next part; undefined after the last one, when the request body has been read to its end. */
  async nextPart(): Promise<Part | undefined> {
    if (this.#finished) return undefined;
    while ((await this.#bodyChunk()) !== undefined);
    if (await this.#isClosing()) {
      this.#finished = true;
      while ((await this.#source.next()) !== undefined);
      return undefined;
    }
    const headers = parsePartHeaders(await this.#takeUntil(HEADERS_END, MAX_HEADERS_BYTES));
    this.#inBody = true;
    this.#part++;
    return { ...headers, body: this.#bodyOf(this.#part) };
  }

  async *#bodyOf(part: number): AsyncGenerator<Buffer> {
    while (part === this.#part) {
      const chunk = await this.#bodyChunk();
      if (chunk === undefined) return;
      yield chunk;
    }
  }

  /** Bytes of the current body; undefined when its delimiter has been consumed. */
  async #bodyChunk(): Promise<Buffer | undefined> {
    while (this.#inBody) {
      const end = this.#buffer.indexOf(this.#delimiter);
      if (end === 0) {
        this.#take(this.#delimiter.length);
        this.#inBody = false;
        return undefined;
      }
      const length = end === -1 ? this.#buffer.length - this.#possibleDelimiter() : end;
      if (length > 0) return this.#take(length);
      await this.#fill();
    }
    return undefined;
  }

  /** How many bytes at the end of the buffer may be the beginning of a delimiter. */
  #possibleDelimiter(): number {
    const { length } = this.#buffer;
    let start = this.#buffer.indexOf(CR, Math.max(0, length - this.#delimiter.length + 1));
    while (start !== -1) {
      if (this.#buffer.subarray(start).equals(this.#delimiter.subarray(0, length - start)))
        return length - start;
      start = this.#buffer.indexOf(CR, start + 1);
    }
    return 0;
  }

  /** Consumes what follows a delimiter: two dashes close the form, a line break (maybe after blanks) opens a part. */
  async #isClosing(): Promise<boolean> {
    while (this.#buffer.length < 2) await this.#fill();
    if (this.#buffer.subarray(0, 2).toString("latin1") === "--") return true;
    const padding = await this.#takeUntil(CRLF, MAX_PADDING_BYTES);
    if (!/^[ \t]*$/.test(padding.toString("latin1")))
      throw invalidMultipart("a boundary is followed by text");
    return false;
  }

  async #takeUntil(mark: Buffer, maxBytes: number): Promise<Buffer> {
    for (;;) {
      const end = this.#buffer.indexOf(mark);
      if (end > maxBytes || (end === -1 && this.#buffer.length > maxBytes + mark.length)) {
        throw invalidMultipart("the header of a part is too long");
      }
      if (end !== -1) {
        const taken = this.#take(end);
        this.#take(mark.length);
        return taken;
      }
      await this.#fill();
    }
  }

  #take(length: number): Buffer {
    const taken = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    return taken;
  }

  async #fill(): Promise<void> {
    const chunk = await this.#source.next();
    if (chunk === undefined) throw invalidMultipart("it ends before its last boundary");
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
  }
}
