/** Warm jails of one kind on a machine: those that wait, and those that replace the jails that were taken. */
import type { Clock } from "./clock.ts";
import type { Processor } from "./processor.ts";

export interface PoolSpec {
  /** Jails that wait on an idle machine. */
  least: number;
  /** Jails that may wait after requests have emptied the pool. */
  most: number;
  /** Time between a request that takes a jail and the making of the next. */
  refillMs: number;
  /** Processor time of making one. */
  makeMs: number;
}

export class Pool {
  readonly #clock: Clock;
  readonly #processor: Processor;
  readonly #spec: PoolSpec;
  #waiting = 0;
  #wanted: number;
  #isMaking = false;
  /** Counts failures: a jail that was begun before a failure is never finished. */
  #generation = 0;

  constructor(clock: Clock, processor: Processor, spec: PoolSpec) {
    this.#clock = clock;
    this.#processor = processor;
    this.#spec = spec;
    this.#wanted = spec.least;
    this.#waiting = spec.least;
  }

  /** Takes a jail; false when none waited. The next jail is made a while later, one at a time. */
  take(): boolean {
    const isWarm = this.#waiting > 0;
    if (isWarm) this.#waiting--;
    if (this.#waiting === 0 && this.#wanted < this.#spec.most) this.#wanted++;
    this.#makeAfter(this.#spec.refillMs);
    return isWarm;
  }

  /** The machine is back, without any jail. */
  restart(): void {
    this.#generation++;
    this.#waiting = 0;
    this.#wanted = this.#spec.least;
    this.#isMaking = false;
    this.#makeAfter(0);
  }

  /** The machine is away. */
  stop(): void {
    this.#generation++;
    this.#waiting = 0;
    this.#isMaking = true;
  }

  #makeAfter(ms: number): void {
    if (this.#isMaking || this.#waiting >= this.#wanted) return;
    this.#isMaking = true;
    const generation = this.#generation;
    const current = (then: () => void) => () => {
      if (generation === this.#generation) then();
    };
    this.#clock.after(
      ms,
      current(() =>
        this.#processor.use(
          this.#spec.makeMs,
          current(() => {
            this.#isMaking = false;
            this.#waiting++;
            this.#makeAfter(0);
          }),
        ),
      ),
    );
  }
}
