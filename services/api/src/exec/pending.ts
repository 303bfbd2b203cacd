/** A job that an API process waits for: its start, its result, and the next thing that happens to it. */
import type { JobResult } from "@svc/contracts";

export type PendingEvent = "changed" | "left" | "elapsed";

export class PendingJob {
  startedAt: number | undefined;
  result: JobResult | undefined;
  #wake: (() => void) | undefined;

  /** `at`: milliseconds since 1970, by the clock of a worker. */
  start(at: number): void {
    this.startedAt ??= performance.now() - Math.max(0, Date.now() - at);
  }

  finish(result: JobResult): void {
    this.result ??= result;
    this.#wake?.();
  }

  /** Waits for a change, for the caller to leave, or for the time to pass. */
  next(waitMs: number, left: AbortSignal): Promise<PendingEvent> {
    if (this.result !== undefined) return Promise.resolve("changed");
    if (left.aborted) return Promise.resolve("left");
    return new Promise((resolve) => {
      const settle = (event: PendingEvent) => {
        clearTimeout(timer);
        left.removeEventListener("abort", onLeft);
        this.#wake = undefined;
        resolve(event);
      };
      const onLeft = () => settle("left");
      const timer = setTimeout(() => settle("elapsed"), waitMs);
      left.addEventListener("abort", onLeft, { once: true });
      this.#wake = () => settle("changed");
    });
  }
}
