/**
 * A spool holds content on its way to the bucket in an unlinked temporary file. So a writer that is slow or leaves costs neither
 * memory nor a request, size and hash are known before the first byte is sent, and a request can be retried. The file vanishes with
 * the process, however that ends. TMPDIR selects the file system.
 */
import { randomBytes } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readExactly } from "../fs/read.ts";
import { type Written, writeContent } from "../fs/write.ts";
import { type Content, StoreError, type WriteLimits } from "../store.ts";

const FILE_MODE = 0o600;

export class Spool {
  readonly size: number;
  readonly etag: string;
  readonly #file: FileHandle;

  private constructor(file: FileHandle, { size, etag }: Written) {
    this.#file = file;
    this.size = size;
    this.etag = etag;
  }

  /** Reads the content into a new spool. Errors that the content throws pass through unchanged. */
  static async fill(content: Content, limits: WriteLimits): Promise<Spool> {
    const file = await namelessFile();
    try {
      return new Spool(file, await writeContent(file, content, limits));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  read(position: number, length: number): Promise<Buffer> {
    return readExactly(this.#file, position, length);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

async function namelessFile(): Promise<FileHandle> {
  const path = join(tmpdir(), `svc-spool-${randomBytes(16).toString("hex")}`);
  try {
    const file = await open(path, "wx+", FILE_MODE);
    await unlink(path);
    return file;
  } catch (error) {
    throw new StoreError("unavailable", "making a temporary file failed", error);
  }
}
