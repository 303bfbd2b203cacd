/**
 * A temporary file on the runner's disk, such as a copy of an input. It has no name, so that nobody else can open it
 * and it vanishes with the process, however that ends. It is sealed with AES-256-GCM: only its key can read it, and
 * a changed or torn file is noticed at its end. TMPDIR chooses the file system.
 */
import { type CipherGCM, createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CIPHER = "aes-256-gcm";
const IV_BYTES = 12;
const FILE_MODE = 0o600;
/** Reads and writes of this size cost less than their sealing. */
const BATCH_BYTES = 256 * 1024;

/** How a file is sealed: its key, and a label that says what it is. */
export interface Seal {
  key: Buffer;
  /** A file opens only under the label that it was made with. */
  label: string;
}

/** The bytes read are not those that were written, or the key is wrong. */
export class NotGenuine extends Error {}

export class SealedFile {
  readonly size: number;
  readonly #file: FileHandle;
  readonly #iv: Buffer;
  readonly #tag: Buffer;

  constructor(file: FileHandle, size: number, iv: Buffer, tag: Buffer) {
    this.size = size;
    this.#file = file;
    this.#iv = iv;
    this.#tag = tag;
  }

  /** Yields the content. It counts only when the end is reached: until then nothing is known to be genuine. */
  async *read({ key, label }: Seal): AsyncGenerator<Buffer> {
    const decipher = createDecipheriv(CIPHER, key, this.#iv);
    decipher.setAAD(Buffer.from(label)).setAuthTag(this.#tag);
    const batch = Buffer.allocUnsafe(Math.min(BATCH_BYTES, this.size));
    for (let at = 0; at < this.size; ) {
      const { bytesRead } = await this.#file.read(batch, 0, Math.min(batch.length, this.size - at), at);
      if (bytesRead === 0) throw new NotGenuine("the copy is cut off");
      at += bytesRead;
      yield decipher.update(batch.subarray(0, bytesRead));
    }
    try {
      decipher.final();
    } catch (error) {
      throw new NotGenuine("the copy was changed", { cause: error });
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

export class SealedFileWriter {
  readonly #file: FileHandle;
  readonly #cipher: CipherGCM;
  readonly #iv: Buffer;
  #batch: Buffer[] = [];
  #batched = 0;
  #written = 0;

  private constructor(file: FileHandle, { key, label }: Seal) {
    this.#file = file;
    this.#iv = randomBytes(IV_BYTES);
    this.#cipher = createCipheriv(CIPHER, key, this.#iv);
    this.#cipher.setAAD(Buffer.from(label));
  }

  static async open(seal: Seal): Promise<SealedFileWriter> {
    const path = join(tmpdir(), `svc-input-${randomBytes(16).toString("hex")}`);
    const file = await open(path, "wx+", FILE_MODE);
    try {
      await unlink(path);
      return new SealedFileWriter(file, seal);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Takes bytes; calls must not overlap. */
  async write(bytes: Buffer): Promise<void> {
    this.#batch.push(this.#cipher.update(bytes));
    this.#batched += bytes.length;
    if (this.#batched >= BATCH_BYTES) await this.#flush();
  }

  async finish(): Promise<SealedFile> {
    this.#cipher.final();
    await this.#flush();
    return new SealedFile(this.#file, this.#written, this.#iv, this.#cipher.getAuthTag());
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #flush(): Promise<void> {
    const [batch, size] = [this.#batch, this.#batched];
    if (size === 0) return;
    this.#batch = [];
    this.#batched = 0;
    const { bytesWritten } = await this.#file.writev(batch, this.#written);
    if (bytesWritten !== size) throw new Error("the disk took only a part");
    this.#written += size;
  }
}
