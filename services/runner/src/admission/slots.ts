/**
 * A semaphore for the runner's slots, with a bounded queue: first come, first served, but resumed programs go before new ones. Resumed programs are
 * not bounded here: there are no more of them than were paused. An aborted waiter leaves the queue at once. Beyond the bound, or after too long a
 * wait, the answer is `runner_busy`.
 */
import { ServiceError } from "@svc/contracts";

interface Waiter {
  grant: () => void;
  refuse: (error: unknown) => void;
}

export interface SlotsOptions {
  total: number;
  queueLimit: number;
  queueWaitMs: number;
}

export class Slots {
  readonly #options: SlotsOptions;
  readonly #goingOn: Waiter[] = [];
  readonly #beginning: Waiter[] = [];
  #busy = 0;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  get counts(): { total: number; busy: number } {
    return { total: this.#options.total, busy: this.#busy };
  }

  /** Waits for a slot; the returned function gives it back and may be called once. */
  async lease(signal: AbortSignal, { goesOn = false }: { goesOn?: boolean } = {}): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#busy < this.#options.total) this.#busy++;
    else if (goesOn) await this.#wait(this.#goingOn, signal);
    else if (this.#beginning.length < this.#options.queueLimit) await this.#wait(this.#beginning, signal);
    else throw busy();
    let held = true;
    return () => {
      if (!held) throw new Error("a slot was given back twice");
      held = false;
      this.#release();
    };
  }

  #wait(line: Waiter[], signal: AbortSignal): Promise<void> {
    const { queueWaitMs } = this.#options;
    return new Promise((resolve, reject) => {
      const leave = (error: unknown) => {
        const index = line.indexOf(waiter);
        if (index !== -1) line.splice(index, 1);
        settle();
        reject(error);
      };
      const timer = setTimeout(() => leave(busy()), queueWaitMs);
      const onAbort = () => leave(signal.reason);
      const settle = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
      };
      const waiter: Waiter = {
        grant: () => {
          settle();
          resolve();
        },
        refuse: leave,
      };
      signal.addEventListener("abort", onAbort, { once: true });
      line.push(waiter);
    });
  }

  #release(): void {
    const next = this.#goingOn.shift() ?? this.#beginning.shift();
    if (next === undefined) this.#busy--;
    else next.grant();
  }

  /** Refuses all waiters; running leases are not touched. */
  close(): void {
    for (const waiter of [...this.#goingOn, ...this.#beginning])
      waiter.refuse(new ServiceError("shutting_down"));
  }
}

const busy = () => new ServiceError("runner_busy", undefined, { headers: { "retry-after": "1" } });
