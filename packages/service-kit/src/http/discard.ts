/**
 * Reads and drops the rest of a request body before it is refused: a client that is still sending would otherwise meet a
 * reset connection instead of the answer. Bounded in bytes and time, over at once when nothing comes; never throws.
 */
import type { IncomingMessage } from "node:http";

const MAX_BYTES = 64 * 1024 * 1024;
const MAX_MS = 5000;
const MAX_SILENCE_MS = 300;

export async function discardBody(request: IncomingMessage): Promise<void> {
  if (request.readableEnded || request.destroyed) return;
  await new Promise<void>((resolve) => {
    let left = MAX_BYTES;
    const count = (chunk: Buffer): void => {
      silence.refresh();
      left -= chunk.length;
      if (left < 0) done();
    };
    const done = (): void => {
      clearTimeout(silence);
      clearTimeout(timer);
      request.off("data", count).off("end", done).off("error", done).off("close", done);
      request.pause();
      resolve();
    };
    // A process that was busy finds its timer due before it has read its sockets, so they are read once more.
    const expire = (): void => {
      const before = left;
      setImmediate(() => {
        if (left === before) done();
      });
    };
    const silence = setTimeout(expire, MAX_SILENCE_MS);
    const timer = setTimeout(done, MAX_MS);
    request.on("data", count).on("end", done).on("error", done).on("close", done);
    request.resume();
  });
}
