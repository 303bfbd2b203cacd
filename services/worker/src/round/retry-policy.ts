/**
 * How often a run is repeated after a fault, and after which pause. A component that is away is retried for a while, counted
 * from the first fault; a run that broke is repeated once. Pure: the caller brings the clock.
 */
import type { Fault } from "./error-classification.ts";

const AWAY_MS = 15_000;
const MAX_REPEATS = 1;
const PAUSE_MS = { first: 100, most: 1000 } as const;

export class RetryPolicy {
  #repeats = 0;
  #awaySince: number | undefined;
  #pause: number = PAUSE_MS.first;

  /** The pause before the next attempt in ms, or undefined when the fault is final. */
  pauseAfter(fault: Fault, nowMs: number): number | undefined {
    if (fault === "final") return undefined;
    if (fault === "broken") {
      this.#awaySince = undefined;
      this.#pause = PAUSE_MS.first;
      return ++this.#repeats > MAX_REPEATS ? undefined : this.#pause;
    }
    this.#awaySince ??= nowMs;
    if (nowMs - this.#awaySince >= AWAY_MS) return undefined;
    const pause = this.#pause;
    this.#pause = Math.min(pause * 2, PAUSE_MS.most);
    return pause;
  }
}
