/** Simulated time: events run in the order of their time, and those of the same time in the order of their creation. Milliseconds. */
import { Heap } from "./heap.ts";

export interface Timer {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

export class Clock {
  readonly #events = new Heap<Timer>(
    (left, right) => left.at < right.at || (left.at === right.at && left.order < right.order),
  );
  #now = 0;
  #made = 0;

  get now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): Timer {
    const timer = { at: this.#now + Math.max(0, ms), order: this.#made++, run, isCancelled: false };
    this.#events.push(timer);
    return timer;
  }

  /** Runs events until there is none, or none up to this time. */
  run(until = Number.POSITIVE_INFINITY): void {
    for (let next = this.#events.peek(); next !== undefined && next.at <= until; next = this.#events.peek()) {
      this.#events.pop();
      if (next.isCancelled) continue;
      this.#now = next.at;
      next.run();
    }
  }
}
