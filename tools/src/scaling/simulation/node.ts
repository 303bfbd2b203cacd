/** A machine with a worker, a runner and jails: slots, processors, warm pools. It can fail and come back. */
import type { Clock } from "./clock.ts";
import { Pool, type PoolSpec } from "./pool.ts";
import { Processor } from "./processor.ts";

/** The work of a machine for one round of a run. Milliseconds. */
export interface Work {
  /** The pool of the run's kind: the run takes a warm jail from it, or waits until one is made. */
  pool: { name: string; spec: PoolSpec } | undefined;
  processorMs: number;
  /** Time without use of a processor. */
  waitMs: number;
  done: () => void;
  /** Called when the machine fails before the end. */
  lost: () => void;
}

export class Node {
  readonly processor: Processor;
  readonly #clock: Clock;
  readonly #slots: number;
  readonly #running = new Set<Work>();
  readonly #pools = new Map<string, Pool>();
  #isAlive = true;
  /** Counts failures: programs that were paused before one are gone. */
  generation = 0;

  constructor(clock: Clock, cores: number, slots: number) {
    this.#clock = clock;
    this.#slots = slots;
    this.processor = new Processor(clock, cores);
  }

  get isFree(): boolean {
    return this.#isAlive && this.#running.size < this.#slots;
  }

  get running(): number {
    return this.#running.size;
  }

  start(work: Work): void {
    this.#running.add(work);
    const missing = work.pool && !this.#poolOf(work.pool).take() ? work.pool.spec.makeMs : 0;
    this.processor.use(work.processorMs + missing, () => {
      this.#clock.after(work.waitMs, () => {
        if (this.#running.delete(work)) work.done();
      });
    });
  }

  fail(): void {
    this.#isAlive = false;
    this.generation++;
    this.processor.clear();
    for (const pool of this.#pools.values()) pool.stop();
    const lost = [...this.#running];
    this.#running.clear();
    for (const work of lost) work.lost();
  }

  comeBack(): void {
    this.#isAlive = true;
    for (const pool of this.#pools.values()) pool.restart();
  }

  #poolOf({ name, spec }: NonNullable<Work["pool"]>): Pool {
    const known = this.#pools.get(name);
    if (known !== undefined) return known;
    const made = new Pool(this.#clock, this.processor, spec);
    this.#pools.set(name, made);
    return made;
  }
}
