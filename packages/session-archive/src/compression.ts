/** Zstandard around archives (RFC 8878), as streams of bounded memory. */
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress, createZstdDecompress } from "node:zlib";
import { DamagedArchive, LargeArchive } from "./members.ts";

/** Each piece costs a turn of the event loop and a turn of a thread: pieces of 16 KiB, the default, cost more than the compression. */
const chunkSize = 1 << 20;
/** The fastest level: what a workspace holds is stored once and read a few times. */
const LEVEL = { chunkSize, params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Base-2 logarithm of the largest window that is read, in bytes. */
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

/** Throws DamagedArchive for bytes that are not compressed ones, LargeArchive for more than `maxBytes`; passes on what the source throws. */
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
