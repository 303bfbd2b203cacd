/** Lets a limited number in at once, in order. The line before it is bounded in length and in time: too long is refused. */
import { ServiceError } from "@svc/contracts";

export interface LineLimits {
  inside: number;
  waiting: number;
  waitMs: number;
}

interface Waiter {
  admit: () => void;
}

export class WaitingLine {
  readonly #limits: LineLimits;
  readonly #waiters = new Set<Waiter>();
  #inside = 0;

  constructor(limits: LineLimits) {
    this.#limits = limits;
  }

  /** Runs the work once there is room for it; throws `ledger_conflict` when the line is full or the wait too long. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inside < this.#limits.inside) this.#inside++;
    else await this.#wait();
    try {
      return await work();
    } finally {
      const [next] = this.#waiters;
      if (next === undefined) this.#inside--;
      else next.admit();
    }
  }

  #wait(): Promise<void> {
    if (this.#waiters.size >= this.#limits.waiting) throw new ServiceError("ledger_conflict");
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(waiter);
      };
      const waiter: Waiter = {
        // The place of whoever leaves is taken over: the number inside stays the same.
        admit: () => {
          leave();
          resolve();
        },
      };
      const timer = setTimeout(() => {
        leave();
        reject(new ServiceError("ledger_conflict"));
      }, this.#limits.waitMs);
      this.#waiters.add(waiter);
    });
  }
}
