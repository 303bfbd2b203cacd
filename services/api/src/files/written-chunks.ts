/** Gives the memory of a download's chunks back once the kernel has their bytes. */
import type { ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Readable } from "node:stream";
import { freeMemory } from "@svc/service-kit";

/** Called before `body` is piped to the response. Nobody else may use its chunks after they were written. */
export function freeWrittenChunks(body: Readable, response: ServerResponse): void {
  let chunks: Buffer[] = [];
  response.once("pipe", () => {
    body.on("data", (chunk: Buffer) => chunks.push(chunk));
    // This listener runs before the pipe's own, which writes the next chunk. So all chunks seen until now have been written.
    response.on("drain", () => {
      const written = chunks;
      chunks = [];
      if (response.writableLength > 0 || !(response.socket instanceof Socket)) return;
      for (const chunk of written) freeMemory(chunk);
    });
  });
}
