/** Buffers bytes for storage, whose number must be known first: in memory while they are few, otherwise sealed on disk. */
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { type Seal, type SealedFile, SealedFileWriter } from "../inputs/sealed-file.ts";

const IN_MEMORY = 1 << 20;

export class Spool {
  readonly #maxBytes: number;
  readonly #seal: Seal = { key: randomBytes(32), label: "session state" };
  #chunks: Buffer[] = [];
  #writer: SealedFileWriter | undefined;
  #file: SealedFile | undefined;
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#size;
  }

  /** Throws a RangeError when there are more bytes than allowed. */
  async write(chunk: Buffer): Promise<void> {
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes) throw new RangeError("more bytes than allowed");
    this.#chunks.push(chunk);
    if (this.#size <= IN_MEMORY) return;
    this.#writer ??= await SealedFileWriter.open(this.#seal);
    for (const one of this.#chunks.splice(0)) await this.#writer.write(one);
  }

  async finish(): Promise<void> {
    this.#file = await this.#writer?.finish();
  }

  /** The bytes. Each call reads from the beginning. */
  read(): Buffer | Readable {
    if (this.#file === undefined) return Buffer.concat(this.#chunks);
    return Readable.from(this.#file.read(this.#seal), { objectMode: false });
  }

  async close(): Promise<void> {
    await (this.#file ?? this.#writer)?.close();
  }
}
