/**
 * A weighted semaphore. Each task holds as many units as it weighs, by default one, and tasks start in the order of their calls.
 * The queue can be bounded in length and waiting time; `refusal` makes the error of a task that exceeds these bounds.
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

  /** A task that weighs more than all units holds all of them. When `left` resolves while the task waits, it is refused at once. */
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
        // The task may already have started.
        if (!this.#waiters.delete(waiter)) return;
        reject(queue?.refusal() ?? new Error("the caller has left"));
        // The next task may be lighter and fit now.
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
