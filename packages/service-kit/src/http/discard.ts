/**
 * Reads and drops the rest of a request body before the request is refused. Otherwise a client that is still sending would
 * get a connection reset instead of the answer. Bounded in bytes and time, and ends soon when nothing comes. Never throws.
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
    // In a process that was busy, the timer may fire before data that waits in the socket is read. So wait for one more read.
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
