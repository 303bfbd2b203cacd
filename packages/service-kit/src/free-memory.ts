/**
 * Gives the memory of a chunk of content back at once. Left to V8 it counts as external memory of the process until a collection, and
 * each 64 MiB of it make V8 mark the whole heap, which costs more than moving the bytes. For the last reader of a chunk alone, after the
 * kernel has its bytes: whoever else has the chunk finds it empty.
 */

/** Smaller ones may share their memory with others, and cost little. */
const MIN_BYTES = 16 * 1024;

/** Only memory that the chunk has for itself. */
export function freeMemory({ buffer, byteLength }: Uint8Array): void {
  if (byteLength < MIN_BYTES || byteLength !== buffer.byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
