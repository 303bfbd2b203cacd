/** What the kernel of this machine says while something goes on. */
import { closeSync, constants, openSync, readSync } from "node:fs";

const RECORD_BYTES = 8192;

/** Words of a kernel in trouble; that it killed a program for a fault or at a limit of its own is none. */
const TROUBLE =
  /\bBUG\b|\bOops\b|\bWARNING\b|\bK[ACM]SAN\b|\bUBSAN\b|refcount_t|unable to handle|corrupt|panic|bad page|list_(?:add|del)|blocked for more than/;

/** Starts to listen; the answer ends it and gives the lines that tell of trouble. Needs a kernel log that can be read. */
export function listenToKernel(): () => string[] {
  const log = openSync("/dev/kmsg", constants.O_RDONLY | constants.O_NONBLOCK);
  drain(log);
  return () => {
    const lines = drain(log);
    closeSync(log);
    return lines.filter((line) => TROUBLE.test(line));
  };
}

/** Each read gives one record, the next one that this descriptor has not seen. */
function drain(log: number): string[] {
  const lines: string[] = [];
  const record = Buffer.alloc(RECORD_BYTES);
  for (;;) {
    try {
      lines.push(record.toString("utf8", 0, readSync(log, record)));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EAGAIN") return lines;
      // EPIPE: records were overwritten before they were read.
      if (code !== "EPIPE") throw error;
    }
  }
}
