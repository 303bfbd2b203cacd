/**
 * Streams one file part to the file server as a pending file. An error of this file is returned, and the form goes on. An error of the
 * whole request is thrown.
 */
import { Readable } from "node:stream";
import { byteSize, fileNameProblem, type NameLimits, newId, ServiceError } from "@svc/contracts";
import type { CallContext, FileStorage } from "./file-storage.ts";
import type { Part } from "./multipart/reader.ts";

export type StoredPart =
  | { ok: true; id: string; filename: string }
  | { ok: false; filename: string; error: ServiceError };

const DEFAULT_TYPE = "application/octet-stream";
const MEDIA_TYPE = /^[!#$&^_.+0-9A-Za-z-]+\/[!#$&^_.+0-9A-Za-z-]+[ \t]*(;[\x20-\x7e]*)?$/;
const MAX_TYPE_CHARS = 255;
/** How much is read from the client while the file server is busy. */
const READ_AHEAD_BYTES = 512 * 1024;

export async function storePart(
  storage: FileStorage,
  session: string,
  part: Part,
  { maxBytes, names, account }: { maxBytes: number; names: NameLimits; account: string },
  context: CallContext,
): Promise<StoredPart> {
  const filename = part.filename ?? "";
  const problem = fileNameProblem(filename, names);
  if (problem !== undefined) {
    return { ok: false, filename, error: new ServiceError("invalid_file_name", `The file name ${problem}.`) };
  }
  const id = newId();
  const body = new LimitedBody(part.body, maxBytes);
  try {
    const content = Readable.from(body.chunks(), { objectMode: false, highWaterMark: READ_AHEAD_BYTES });
    await storage.stage(
      { session, file: id },
      content,
      { filename, contentType: mediaType(part), account },
      context,
    );
    return { ok: true, id, filename };
  } catch (error) {
    await body.settled();
    if (body.sourceFailure !== undefined) throw body.sourceFailure;
    if (body.isTooLarge) return { ok: false, filename, error: tooLarge(maxBytes) };
    if (error instanceof ServiceError) return { ok: false, filename, error };
    throw error;
  }
}

/** Counts the bytes of a part and remembers what stopped them. */
class LimitedBody {
  readonly #source: AsyncIterator<Buffer>;
  readonly #maxBytes: number;
  #reading: Promise<unknown> = Promise.resolve();
  isTooLarge = false;
  sourceFailure: unknown;

  constructor(source: AsyncIterable<Buffer>, maxBytes: number) {
    this.#source = source[Symbol.asyncIterator]();
    this.#maxBytes = maxBytes;
  }

  async *chunks(): AsyncGenerator<Buffer> {
    for (let bytes = 0; ; ) {
      const chunk = await this.#next();
      if (chunk === undefined) return;
      bytes += chunk.length;
      this.isTooLarge = bytes > this.#maxBytes;
      if (this.isTooLarge) throw tooLarge(this.#maxBytes);
      yield chunk;
    }
  }

  async #next(): Promise<Buffer | undefined> {
    try {
      const reading = this.#source.next();
      this.#reading = reading;
      const { done, value } = await reading;
      return done === true ? undefined : value;
    } catch (error) {
      this.sourceFailure = error;
      throw error;
    }
  }

  /** Waits until nobody reads from the part any more, so that the form can go on. */
  async settled(): Promise<void> {
    await this.#reading.catch(() => undefined);
  }
}

function mediaType({ contentType = "" }: Part): string {
  return contentType.length <= MAX_TYPE_CHARS && MEDIA_TYPE.test(contentType) ? contentType : DEFAULT_TYPE;
}

function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError("file_too_large", `The file is larger than ${byteSize(maxBytes)}.`);
}
