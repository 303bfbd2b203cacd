/**
 * Keeps the memory of transfers from starting collections of the whole heap. V8 does not see the size of network buffers
 * when it decides about its cheap young collections, only when it decides about full ones: moving a few files would start
 * one full collection after the other, which costs more than the transfers. So a young collection (about 1 ms) is asked for
 * whenever this many bytes have been moved.
 */
import type { ServerResponse } from "node:http";
import { collect } from "./collector.ts";

const BYTES_BETWEEN = 16 * 2 ** 20;

let moved = 0;

/** Called by whoever has moved bytes through this process, as often as it likes. */
export function noteMovedBytes(bytes: number): void {
  moved += bytes;
  if (moved < BYTES_BETWEEN) return;
  moved = 0;
  collect({ type: "minor" });
}

/** Notes what a response sends, while it sends. */
export function noteSentBytes(response: ServerResponse): void {
  const { socket } = response;
  let noted = socket?.bytesWritten ?? 0;
  const note = (): void => {
    const written = socket?.bytesWritten ?? 0;
    noteMovedBytes(written - noted);
    noted = written;
  };
  response.on("drain", note).once("close", note);
}
