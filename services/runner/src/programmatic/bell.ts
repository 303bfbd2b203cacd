/** Wakes the one who waits when something has happened. What happened meanwhile is not missed. */
export class Bell {
  #rung = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Settles at the next ring, at once if there was one since the last wait, or after the given time. */
  async wait(ms?: number): Promise<void> {
    if (!this.#rung) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
      await promise;
      clearTimeout(timer);
      this.#wake = undefined;
    }
    this.#rung = false;
  }
}
