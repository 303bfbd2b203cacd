/** Tracks which content this process is reading, so that a deletion keeps the bytes until the last reader has ended. */
export class Readers {
  readonly #held = new Map<string, { count: number; afterwards: (() => void) | undefined }>();

  /** Returns a function that ends the hold; calling it again does nothing. */
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

  /** If the key has readers, returns true and runs `operation` after the last of them has ended. */
  afterLast(key: string, operation: () => void): boolean {
    const hold = this.#held.get(key);
    if (hold === undefined) return false;
    hold.afterwards = operation;
    return true;
  }
}
