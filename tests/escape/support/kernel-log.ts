/** What the kernel of this machine says while something goes on. */
import { closeSync, constants, openSync, readSync } from "node:fs";

const RECORD_BYTES = 8192;

/** Words of a kernel that is in trouble; a program that it killed for its own fault or limit is not among them. */
const TROUBLE =
  /\bBUG\b|\bOops\b|\bWARNING\b|\bK[ACM]SAN\b|\bUBSAN\b|Call Trace|refcount_t|unable to handle|corruption|panic|stack guard|bad page|list_(?:add|del)|hung_task|blocked for more than/i;

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
