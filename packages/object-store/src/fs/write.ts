/**
 * Writes streamed content to an open file. Hashes and counts the content on the way, gathers it into large writes, and receives the
 * next bytes during a write. At most two gathered writes are in memory, and the memory of written chunks is freed.
 */
import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { freeMemory } from "@svc/service-kit/free-memory";
import { type Content, StoreError, type WriteLimits } from "../store.ts";
import { fsCall } from "./errors.ts";

const GATHER_BYTES = 1024 * 1024;

export interface Written {
  size: number;
  etag: string;
}

export async function writeContent(
  file: FileHandle,
  content: Content,
  limits: WriteLimits,
): Promise<Written> {
  const hash = createHash("sha256");
  let size = 0;
  let gathered: Uint8Array[] = [];
  let gatheredBytes = 0;
  let position = 0;
  let writing: Promise<void> = Promise.resolve();

  const flush = async (): Promise<void> => {
    await writing;
    const [chunks, at] = [gathered, position];
    position += gatheredBytes;
    gathered = [];
    gatheredBytes = 0;
    writing = fsCall("writing an object file", () => writeAll(file, chunks, at));
    writing.catch(() => undefined);
  };

  try {
    for await (const chunk of content) {
      size += chunk.byteLength;
      if (size > limits.maxBytes) throw new StoreError("too_large", `more than ${limits.maxBytes} bytes`);
      hash.update(chunk);
      gathered.push(chunk);
      gatheredBytes += chunk.byteLength;
      if (gatheredBytes >= GATHER_BYTES) await flush();
    }
    if (gatheredBytes > 0) await flush();
  } finally {
    await writing.catch(() => undefined);
  }
  await writing;
  return { size, etag: hash.digest("hex") };
}

/** Writes all bytes or throws. A disk that fills up may accept only a part, which `writev` does not report as an error. */
export async function writeAll(file: FileHandle, chunks: readonly Uint8Array[], at: number): Promise<void> {
  const total = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  const { bytesWritten } = await file.writev(chunks, at);
  if (bytesWritten < total) await writeRest(file, chunks, at, bytesWritten);
  for (const chunk of chunks) freeMemory(chunk);
}

async function writeRest(
  file: FileHandle,
  chunks: readonly Uint8Array[],
  at: number,
  bytesWritten: number,
): Promise<void> {
  const rest = Buffer.concat(chunks).subarray(bytesWritten);
  for (let done = 0; done < rest.length; ) {
    done += (await file.write(rest, done, rest.length - done, at + bytesWritten + done)).bytesWritten;
  }
}
