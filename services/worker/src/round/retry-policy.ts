/**
 * How often a run is repeated after a fault, and after which pause. A component that is away is retried for
 * a while, counted from the first fault. A slot or a runner is waited for until a time that the caller sets.
 * A run that broke is repeated once. Pure: the caller passes the clock.
 */
import type { Fault } from "./error-classification.ts";

export const AWAY_MS = 15_000;
const MAX_REPEATS = 1;
const PAUSE_MS = { first: 100, most: 1000 } as const;

export class RetryPolicy {
  #repeats = 0;
  #awaySince: number | undefined;
  #pause: number = PAUSE_MS.first;
  #waitUntil: number;

  /** `waitUntilMs`: until when the run waits for a slot or a runner. */
  constructor(waitUntilMs: number) {
    this.#waitUntil = waitUntilMs;
  }

  /** Whether an earlier attempt of the run may have begun. */
  get hasRepeated(): boolean {
    return this.#repeats > 0;
  }

  /** The pause before the next attempt in ms, or undefined when the fault is final. */
  pauseAfter(fault: Fault, nowMs: number): number | undefined {
    if (fault === "final") return undefined;
    if (fault === "broken") {
      this.#awaySince = undefined;
      this.#waitUntil = Math.max(this.#waitUntil, nowMs + AWAY_MS);
      this.#pause = PAUSE_MS.first;
      return ++this.#repeats > MAX_REPEATS ? undefined : this.#pause;
    }
    if (fault === "busy" || fault === "absent") {
      this.#awaySince = undefined;
      return nowMs >= this.#waitUntil ? undefined : this.#nextPause();
    }
    this.#awaySince ??= nowMs;
    return nowMs - this.#awaySince >= AWAY_MS ? undefined : this.#nextPause();
  }

  #nextPause(): number {
    const pause = this.#pause;
    this.#pause = Math.min(pause * 2, PAUSE_MS.most);
    return pause;
  }
}
