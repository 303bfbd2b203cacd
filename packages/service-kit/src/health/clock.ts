/** Measures the difference between two clocks. Pure. */

/**
 * Two clocks that each differ from a third one by at most this differ from each other by less than 30 s. A manifest tolerates that
 * difference between worker and runner.
 */
export const CLOCK_TOLERANCE_MS = 10_000;

/** A reading of another clock, between two readings of this machine's clock. */
export interface Bracket {
  beforeMs: number;
  toldMs: number;
  afterMs: number;
}

/** The smallest possible lead of this machine's clock over the other, in ms; negative when it is behind. Allows for any network delay. */
export function aheadBy({ beforeMs, toldMs, afterMs }: Bracket): number {
  if (toldMs < beforeMs) return beforeMs - toldMs;
  return toldMs > afterMs ? afterMs - toldMs : 0;
}

/** The readiness reason when the clocks differ too much, otherwise undefined. `whose`: the other clock, like "Redis's". */
export function clockReason(bracket: Bracket, whose: string): string | undefined {
  const ms = aheadBy(bracket);
  if (Math.abs(ms) <= CLOCK_TOLERANCE_MS) return undefined;
  return `its clock is ${Math.round(Math.abs(ms) / 1000)} s ${ms > 0 ? "ahead of" : "behind"} ${whose}`;
}
