/** Percentiles of samples, and their confidence intervals. Pure. */
export interface Summary {
  /** In the order in which they were taken. */
  samples: number[];
  n: number;
  min: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
  mean: number;
}

/** Nearest rank: the smallest sample that is not below the given share of all. */
export function percentile(sorted: readonly number[], share: number): number {
  const rank = Math.max(1, Math.ceil(share * sorted.length));
  return sorted[rank - 1] ?? Number.NaN;
}

export function summarize(samples: readonly number[]): Summary {
  const sorted = [...samples].sort((left, right) => left - right);
  return {
    samples: samples.map((sample) => Math.round(sample * 100) / 100),
    n: sorted.length,
    min: round(percentile(sorted, 0)),
    p50: round(percentile(sorted, 0.5)),
    p95: round(percentile(sorted, 0.95)),
    p99: round(percentile(sorted, 0.99)),
    max: round(percentile(sorted, 1)),
    mean: round(sum(sorted) / sorted.length),
  };
}

/** The median of consecutive values: `first` and `last` are their positions, counted from one. */
export interface Window {
  first: number;
  last: number;
  p50: number;
}

const WINDOW_ENDS = [20, 100, 300, 1000];

/** The windows that the values fill. The first ones are short, because warm-up is quick at first. */
export function windowsOf(values: readonly number[]): Window[] {
  const ends = WINDOW_ENDS.filter((end) => end <= values.length);
  return ends.map((last, at) => {
    const before = ends[at - 1] ?? 0;
    return { first: before + 1, last, p50: summarize(values.slice(before, last)).p50 };
  });
}

export function sum(values: Iterable<number>): number {
  return [...values].reduce((total, value) => total + value, 0);
}

/** Milliseconds with microseconds as the last digit. */
export function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** A random order, so that no case always follows the same other case. */
export function shuffled<T>(items: readonly T[], random: () => number = Math.random): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [result[last], result[other]] = [result[other] as T, result[last] as T];
  }
  return result;
}

/** Random numbers in [0, 1) that are the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export type Statistic = (samples: readonly number[]) => number;

export const quantileOf =
  (share: number): Statistic =>
  (samples) =>
    percentile(
      [...samples].sort((left, right) => left - right),
      share,
    );

export const meanOf: Statistic = (samples) => sum(samples) / samples.length;

const RESAMPLES = 400;
const SEED = 1;

/**
 * The interval that contains, in 95 of 100 repetitions, a number computed from several sets of samples. It is estimated by
 * drawing new sets from the given ones (the bootstrap). The same samples give the same interval.
 */
export function interval95(
  sets: readonly (readonly number[])[],
  combine: (drawn: readonly (readonly number[])[]) => number,
): [low: number, high: number] {
  const random = randomFrom(SEED);
  const draw = (samples: readonly number[]) =>
    samples.map(() => samples[Math.floor(random() * samples.length)] as number);
  const results = Array.from({ length: RESAMPLES }, () => combine(sets.map(draw))).sort(
    (left, right) => left - right,
  );
  return [percentile(results, 0.025), percentile(results, 0.975)];
}
