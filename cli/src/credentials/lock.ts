/**
 * Lets only one command at a time change a file of credentials. The lock ends with its process, however that process ends.
 */
import { Problem } from "../problem.ts";
import { takeLock } from "../supervisor/lock.ts";
import { sleep } from "../system/process.ts";

const WAIT_MS = 30_000;
const LOOK_EVERY_MS = 15;

export async function underLock<T>(path: string, work: () => T | Promise<T>, waitMs = WAIT_MS): Promise<T> {
  const end = performance.now() + waitMs;
  for (;;) {
    const lock = await takeLock(`credentials ${path}`);
    if (lock !== undefined) {
      try {
        return await work();
      } finally {
        await new Promise((resolve) => lock.close(resolve));
      }
    }
    if (performance.now() > end)
      throw new Problem(`another command is changing ${path}`, "Run this one again when it has ended.");
    await sleep(LOOK_EVERY_MS);
  }
}
