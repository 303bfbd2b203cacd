/**
 * Streams the content of an object, or a range of it. A read that the network interrupts resumes where it stopped. A server that
 * stays silent for too long fails the attempt.
 */
import type { Readable } from "node:stream";
import type { ObjectRecord } from "@svc/contracts";
import { retry } from "@svc/service-kit/retry";
import { type ByteRange, StoreError } from "../store.ts";
import { VerifiedStream } from "../verified-stream.ts";
import type { Bucket } from "./bucket.ts";
import { s3Call } from "./errors.ts";

const ATTEMPTS = 3;
const FIRST_PAUSE_MS = 100;
const LONGEST_SILENCE_MS = 10_000;

export class ContentStream extends VerifiedStream {
  readonly #bucket: Bucket;
  readonly #key: string;
  readonly #abort = new AbortController();
  readonly #release: () => void;
  #source: { body: Readable; chunks: AsyncIterator<Buffer> } | undefined;

  /** Calls `release` once, when reading has ended. */
  constructor(
    bucket: Bucket,
    key: string,
    record: ObjectRecord,
    range: ByteRange | undefined,
    release: () => void,
  ) {
    super(record, range);
    this.#bucket = bucket;
    this.#key = key;
    this.#release = release;
  }

  protected override async chunk(): Promise<Buffer> {
    return retry(
      () => s3Call("reading an object", () => this.#piece()),
      (error, failures) => {
        this.#dropSource();
        const again = (error as StoreError).failure === "unavailable" && failures < ATTEMPTS;
        return again && !this.destroyed ? FIRST_PAUSE_MS * 2 ** (failures - 1) : undefined;
      },
    );
  }

  async #piece(): Promise<Buffer> {
    const silence = setTimeout(() => this.#source?.body.destroy(new Error("silence")), LONGEST_SILENCE_MS);
    try {
      this.#source ??= await this.#open();
      const { done, value } = await this.#source.chunks.next();
      if (done) throw new Error("the content broke off");
      if (value.length > this.end - this.position) throw new StoreError("damaged", "too many bytes");
      return value;
    } finally {
      clearTimeout(silence);
    }
  }

  async #open() {
    const range = { first: this.position, last: this.end - 1 };
    const body = await this.#bucket.stream(this.#key, range, this.#abort.signal);
    // The iterator passes the error on to the reader that waits for a chunk.
    body.on("error", () => undefined);
    if (this.destroyed) body.destroy();
    return { body, chunks: body[Symbol.asyncIterator]() as AsyncIterator<Buffer> };
  }

  #dropSource(): void {
    this.#source?.body.destroy();
    this.#source = undefined;
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#abort.abort();
    this.#dropSource();
    this.#release();
    callback(error);
  }
}
