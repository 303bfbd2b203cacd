/** Compresses and decompresses archives with Zstandard (RFC 8878), as streams with bounded memory. */
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress, createZstdDecompress } from "node:zlib";
import { DamagedArchive, LargeArchive } from "./members.ts";

/** Each chunk costs a turn of the event loop and of a thread. With chunks of 16 KiB, the default, that costs more than the compression. */
const chunkSize = 1 << 20;
/** The fastest level: the content of a workspace is stored once and read a few times. */
const LEVEL = { chunkSize, params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Base-2 logarithm of the largest window, in bytes, that the decompressor accepts. */
const WINDOW = { chunkSize, params: { [constants.ZSTD_d_windowLogMax]: 23 } };

/** Compresses into `write`. */
export async function compress(
  bytes: AsyncIterable<Buffer>,
  write: (chunk: Buffer) => Promise<void>,
): Promise<void> {
  await pipeline(bytes, createZstdCompress(LEVEL), async (compressed: AsyncIterable<Buffer>) => {
    for await (const chunk of compressed) await write(chunk);
  });
}

/** Throws DamagedArchive for invalid compressed data, and LargeArchive for more than `maxBytes`. Errors of the source pass through. */
export async function* decompress(source: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  const stream = createZstdDecompress(WINDOW);
  const fed = pipeline(source, stream);
  fed.catch(() => undefined);
  let total = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      total += chunk.length;
      if (total > maxBytes) throw new LargeArchive("it is too large");
      yield chunk;
    }
    await fed;
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (typeof code === "string" && /^(ERR_ZSTD|ZSTD_|Z_)/.test(code))
      throw new DamagedArchive("it is not compressed as it should be", { cause: error });
    throw error;
  } finally {
    stream.destroy();
  }
}
