/** A job that a producer waits for: its start, and the next event. */
export type PendingEvent = "announced" | "left" | "elapsed";

export class PendingJob {
  startedAt: number | undefined;
  #isAnnounced = false;
  #wake: (() => void) | undefined;

  /** `at`: ms since 1970, by the clock of a worker. */
  start(at: number): void {
    this.startedAt ??= performance.now() - Math.max(0, Date.now() - at);
  }

  /** The result is in the store. */
  announce(): void {
    this.#isAnnounced = true;
    this.#wake?.();
  }

  /** Waits for the announcement, for the caller to leave, or for the time to pass. */
  async next(waitMs: number, left: AbortSignal): Promise<PendingEvent> {
    const event = await this.#wait(waitMs, left);
    if (event === "announced") this.#isAnnounced = false;
    return event;
  }

  #wait(waitMs: number, left: AbortSignal): PendingEvent | Promise<PendingEvent> {
    if (this.#isAnnounced) return "announced";
    if (left.aborted) return "left";
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
      this.#wake = () => settle("announced");
    });
  }
}
