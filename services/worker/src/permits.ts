/**
 * How many jobs of one kind a worker does at once, whichever way they come. A permit that is given back is offered to
 * `onFree` first, then to those who wait for one, in their order. Pure but for its timers.
 */
interface Waiting {
  resolve: (has: boolean) => void;
  timer: NodeJS.Timeout;
}

export class Permits {
  #free: number;
  readonly #waiting = new Set<Waiting>();
  readonly #watching = new Set<() => void>();
  /** Takes permits in the same turn, if it wants any. */
  onFree: (() => void) | undefined;

  constructor(count: number) {
    this.#free = count;
  }

  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free--;
    return true;
  }

  /** Takes a permit as soon as one is free. False: none was in time. */
  takeWithin(ms: number): Promise<boolean> {
    if (this.tryTake()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const waiting: Waiting = {
        resolve,
        timer: setTimeout(() => {
          this.#waiting.delete(waiting);
          resolve(false);
        }, ms),
      };
      this.#waiting.add(waiting);
    });
  }

  /** Waits until a permit is free, and takes none. */
  whenFree(): Promise<void> {
    if (this.#free > 0) return Promise.resolve();
    return new Promise((resolve) => this.#watching.add(resolve));
  }

  giveBack(): void {
    this.#free++;
    this.onFree?.();
    for (const waiting of this.#waiting) {
      if (!this.tryTake()) return;
      this.#waiting.delete(waiting);
      clearTimeout(waiting.timer);
      waiting.resolve(true);
    }
    if (this.#free === 0) return;
    for (const resolve of this.#watching) resolve();
    this.#watching.clear();
  }
}
