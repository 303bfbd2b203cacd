/** Knows which content is being read in this process, so that a deletion waits with the bytes until nobody needs them. */
export class Readers {
  readonly #held = new Map<string, { count: number; afterwards: (() => void) | undefined }>();

  /** The answer ends the hold; calling it again does nothing. */
  hold(key: string): () => void {
    const hold = this.#held.get(key) ?? { count: 0, afterwards: undefined };
    this.#held.set(key, hold);
    hold.count++;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      hold.count--;
      if (hold.count > 0) return;
      this.#held.delete(key);
      hold.afterwards?.();
    };
  }

  /** True when somebody reads; then `operation` runs after the last of them. */
  afterLast(key: string, operation: () => void): boolean {
    const hold = this.#held.get(key);
    if (hold === undefined) return false;
    hold.afterwards = operation;
    return true;
  }
}
