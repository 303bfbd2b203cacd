/**
 * Frees the memory of a content chunk at once. Otherwise the chunk counts as external memory until a garbage collection. V8 marks the
 * whole heap for each 64 MiB of external memory, which costs more than moving the bytes. Only the last reader of a chunk may call
 * this, after the kernel has the bytes: every other holder then finds the chunk empty.
 */

/** Smaller chunks may share their memory with others, and they cost little. */
const MIN_BYTES = 16 * 1024;

/** Does nothing when the chunk shares its memory with others. */
export function freeMemory({ buffer, byteLength }: Uint8Array): void {
  if (byteLength < MIN_BYTES || byteLength !== buffer.byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
