/** Retries a task after transient failures. The caller's retry policy decides which failures to retry, and with which backoff. */
import { setTimeout as sleep } from "node:timers/promises";

/** The pause in ms before the next attempt; undefined when the failure is final. `failures` counts from 1. */
export type PauseAfter = (error: unknown, failures: number) => number | undefined;

/**
 * Resolves with the first success. Rejects with the final failure. When the signal aborts during an attempt that fails, it rejects
 * with the signal's reason; during a pause, with an AbortError.
 */
export async function retry<T>(
  task: () => Promise<T>,
  pauseAfter: PauseAfter,
  signal?: AbortSignal,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await task();
    } catch (error) {
      signal?.throwIfAborted();
      const pause = pauseAfter(error, failures);
      if (pause === undefined) throw error;
      if (pause > 0) await sleep(pause, undefined, { signal });
    }
  }
}
