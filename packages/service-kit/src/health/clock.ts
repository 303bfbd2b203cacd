/** How far a clock is off. Pure. */

/**
 * Two machines whose clocks are so close to a third's differ by no more than what a manifest tolerates in worker and runner
 * together, 30 s.
 */
export const CLOCK_TOLERANCE_MS = 10_000;

/** When this machine's clock was read before and after another one told its time. */
export interface Bracket {
  beforeMs: number;
  toldMs: number;
  afterMs: number;
}

/** The least by which this machine's clock is ahead of the other; negative: behind it. The answer may have taken any time. */
export function aheadBy({ beforeMs, toldMs, afterMs }: Bracket): number {
  if (toldMs < beforeMs) return beforeMs - toldMs;
  return toldMs > afterMs ? afterMs - toldMs : 0;
}

/** `whose`: the other clock, like "Redis's". Undefined when the two are close enough. */
export function clockReason(bracket: Bracket, whose: string): string | undefined {
  const ms = aheadBy(bracket);
  if (Math.abs(ms) <= CLOCK_TOLERANCE_MS) return undefined;
  return `its clock is ${Math.round(Math.abs(ms) / 1000)} s ${ms > 0 ? "ahead of" : "behind"} ${whose}`;
}
