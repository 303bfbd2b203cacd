/**
 * Bounds what happens at once: each task holds one unit, or as many as it weighs, and tasks start in the order of asking.
 * The queue may be bounded in length and in time; `refusal` makes the error of a task that does not start for that reason.
 */
export interface SemaphoreOptions {
  units: number;
  queue?: { length: number; waitMs: number; refusal: () => Error };
}

interface Waiter {
  weight: number;
  start: () => void;
}

export class Semaphore {
  readonly #options: SemaphoreOptions;
  readonly #waiters = new Set<Waiter>();
  #free: number;

  constructor(options: SemaphoreOptions) {
    this.#options = options;
    this.#free = options.units;
  }

  /** A task that weighs more than all units holds them all. One whose caller has `left` while it waits is refused at once. */
  async run<T>(task: () => Promise<T>, weight = 1, left?: Promise<void>): Promise<T> {
    const held = Math.min(weight, this.#options.units);
    if (this.#waiters.size === 0 && held <= this.#free) this.#free -= held;
    else await this.#wait(held, left);
    try {
      return await task();
    } finally {
      this.#free += held;
      this.#startWaiters();
    }
  }

  #wait(weight: number, left: Promise<void> | undefined): Promise<void> {
    const { queue } = this.#options;
    if (queue !== undefined && this.#waiters.size >= queue.length) throw queue.refusal();
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        clearTimeout(timer);
        // It may have started.
        if (!this.#waiters.delete(waiter)) return;
        reject(queue?.refusal() ?? new Error("the caller has left"));
        // The next may be lighter.
        this.#startWaiters();
      };
      const timer = queue && setTimeout(giveUp, queue.waitMs);
      const start = () => {
        clearTimeout(timer);
        resolve();
      };
      const waiter = { weight, start };
      this.#waiters.add(waiter);
      void left?.then(giveUp);
    });
  }

  #startWaiters(): void {
    for (const waiter of this.#waiters) {
      if (waiter.weight > this.#free) return;
      this.#waiters.delete(waiter);
      this.#free -= waiter.weight;
      waiter.start();
    }
  }
}
