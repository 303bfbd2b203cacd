/** Warm jails of one kind on a machine: what waits, and what is made in the place of those that were taken. */
import type { Clock } from "./clock.ts";
import type { Processor } from "./processor.ts";

export interface PoolSpec {
  /** That wait on an idle machine. */
  least: number;
  /** That may wait when requests empty it. */
  most: number;
  /** Between a request that takes one and the making of the next. */
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
  /** Counts failures: what was begun before one makes nothing. */
  #generation = 0;

  constructor(clock: Clock, processor: Processor, spec: PoolSpec) {
    this.#clock = clock;
    this.#processor = processor;
    this.#spec = spec;
    this.#wanted = spec.least;
    this.#waiting = spec.least;
  }

  /** Whether one waited. The next one is made a while later, one at a time. */
  take(): boolean {
    const isWarm = this.#waiting > 0;
    if (isWarm) this.#waiting--;
    if (this.#waiting === 0 && this.#wanted < this.#spec.most) this.#wanted++;
    this.#makeAfter(this.#spec.refillMs);
    return isWarm;
  }

  /** The machine is there again, with nothing made. */
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
