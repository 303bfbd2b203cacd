/**
 * The processors of one machine under processor sharing: each of n jobs gets an equal part, and at most one core. All jobs
 * gain the same service at any time. So the first job to end is the one with the lowest sum of its work and the common gain
 * at its arrival.
 */
import type { Clock, Timer } from "./clock.ts";
import { Heap } from "./heap.ts";

interface Job {
  /** The common gain at which it ends. */
  endsAt: number;
  order: number;
  done: () => void;
}

export class Processor {
  readonly #clock: Clock;
  readonly #cores: number;
  readonly #jobs = new Heap<Job>(
    (left, right) => left.endsAt < right.endsAt || (left.endsAt === right.endsAt && left.order < right.order),
  );
  #gain = 0;
  #since = 0;
  #busyMs = 0;
  #made = 0;
  #next: Timer | undefined;

  constructor(clock: Clock, cores: number) {
    this.#clock = clock;
    this.#cores = cores;
  }

  /** Core milliseconds of work so far. */
  get busyMs(): number {
    this.#advance();
    return this.#busyMs;
  }

  get jobs(): number {
    return this.#jobs.size;
  }

  /** Starts work of this many core milliseconds. `done` is called at its end, and never after `clear`. */
  use(ms: number, done: () => void): void {
    this.#advance();
    this.#jobs.push({ endsAt: this.#gain + ms, order: this.#made++, done });
    this.#plan();
  }

  /** Drops all work, as a failing machine does. */
  clear(): void {
    this.#advance();
    this.#jobs.clear();
    this.#plan();
  }

  #rate(): number {
    return Math.min(1, this.#cores / this.#jobs.size);
  }

  #advance(): void {
    const passed = this.#clock.now - this.#since;
    this.#since = this.#clock.now;
    if (this.#jobs.size === 0) return;
    this.#gain += passed * this.#rate();
    this.#busyMs += passed * Math.min(this.#jobs.size, this.#cores);
  }

  #plan(): void {
    if (this.#next !== undefined) this.#next.isCancelled = true;
    const first = this.#jobs.peek();
    this.#next = first && this.#clock.after((first.endsAt - this.#gain) / this.#rate(), () => this.#end());
  }

  #end(): void {
    this.#advance();
    const job = this.#jobs.pop();
    if (job === undefined) return;
    // Set exactly, so that rounding errors do not add up.
    this.#gain = job.endsAt;
    if (this.#jobs.size === 0) this.#gain = 0;
    this.#next = undefined;
    this.#plan();
    job.done();
  }
}
