/** A condition: one task waits until another notifies it. */

export class Condition {
  #isNotified = false;
  #wake: (() => void) | undefined;

  /** Ends the current wait, or the next one if there is none: an early notification is not lost. */
  notify(): void {
    this.#isNotified = true;
    this.#wake?.();
  }

  /**
   * Resolves at the next notification, after `ms`, or when the signal aborts. Resolves at once if a notification came since the last
   * wait. The result is true after a notification. Only one wait at a time.
   */
  async wait({ ms, signal }: { ms?: number; signal?: AbortSignal } = {}): Promise<boolean> {
    if (!this.#isNotified && signal?.aborted !== true) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const wake = () => resolve();
      this.#wake = wake;
      const timer = ms === undefined ? undefined : setTimeout(wake, ms);
      signal?.addEventListener("abort", wake, { once: true });
      await promise;
      clearTimeout(timer);
      signal?.removeEventListener("abort", wake);
      this.#wake = undefined;
    }
    const isNotified = this.#isNotified;
    this.#isNotified = false;
    return isNotified;
  }
}
