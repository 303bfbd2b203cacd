/**
 * Gives the memory of a download's chunks back once the kernel has their bytes. Left to V8 it counts as external memory of the process
 * until a collection, and each 64 MiB of it make V8 mark the whole heap, which costs more than sending the bytes.
 */
import type { ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Readable } from "node:stream";

/** Smaller ones may share their memory with others; they are left to V8. */
const MIN_BYTES = 16 * 1024;

/** Called before `body` is piped to the response. Nobody else may use its chunks after they were written. */
export function freeWrittenChunks(body: Readable, response: ServerResponse): void {
  let chunks: Buffer[] = [];
  response.once("pipe", () => {
    body.on("data", (chunk: Buffer) => chunks.push(chunk));
    // Comes before the pipe's own, which writes the next chunk: what was seen until now is what was written.
    response.on("drain", () => {
      const written = chunks;
      chunks = [];
      if (response.writableLength > 0 || !(response.socket instanceof Socket)) return;
      for (const chunk of written) free(chunk);
    });
  });
}

/** Only memory that the chunk has for itself. */
function free({ buffer, byteLength }: Buffer): void {
  if (byteLength < MIN_BYTES || byteLength !== buffer.byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
