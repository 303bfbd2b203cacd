/**
 * Takes the samples. Cases that are compared with each other form a group. They take short turns right after each other, in
 * a random order each time, so that a slow moment of the machine affects all of them. Within a turn one case runs alone, as
 * in real use; in a group that alternates, a turn is one sample.
 */
import { type Summary, shuffled, summarize } from "./statistics.ts";

export interface Case {
  /** Different in each case. */
  name: string;
  /** Samples to take. */
  n: number;
  /** Runs before each block of its group, unmeasured. */
  warmUp: number;
  /** Runs once and answers its milliseconds. */
  sample: () => Promise<number>;
}

/** Cases that are compared with each other. */
export interface Group {
  cases: readonly Case[];
  /** Its turns are of one sample each. */
  alternates: boolean;
}

/** Turns of each case. */
export const TURNS = 10;
/** Blocks of each group where it is measured by itself: no group is measured only in a slow minute of the machine. */
export const BLOCKS_PER_GROUP = 2;
/** The warm-up of a case ends after this time. */
const MOST_WARM_UP_MS = 4000;

/** Milliseconds of consecutive runs: `most` of them, or fewer when `mostMs` have passed. */
export async function repeated(sample: Case["sample"], most: number, mostMs: number): Promise<number[]> {
  const times: number[] = [];
  const end = performance.now() + mostMs;
  while (times.length < most && performance.now() < end) times.push(await sample());
  return times;
}

/** Runs before a block, unmeasured. */
export async function warmUp({ sample, warmUp }: Pick<Case, "sample" | "warmUp">): Promise<void> {
  await repeated(sample, warmUp, MOST_WARM_UP_MS);
}

/** A group that alternates is also warmed up in turn. */
async function warmUpGroup({ cases, alternates }: Group): Promise<void> {
  if (!alternates) {
    for (const each of cases) await warmUp(each);
    return;
  }
  const round = async () => {
    for (const { sample } of cases) await sample();
    return 0;
  };
  await warmUp({ sample: round, warmUp: Math.max(...cases.map((each) => each.warmUp)) });
}

type Samples = Map<string, number[]>;
type Summaries = Map<string, Summary>;

/** Milliseconds of the first runs, one case after the other. */
export async function firstRuns(
  cases: readonly (Case & { firstRuns: number })[],
  mostMs: number,
  onCase: (name: string) => void,
): Promise<Samples> {
  const all: Samples = new Map();
  for (const { name, firstRuns: most, sample } of cases) {
    onCase(name);
    all.set(name, await repeated(sample, most, mostMs));
  }
  return all;
}

/**
 * Measures each group by itself: all groups one after the other in a random order, and again in another order. A block
 * begins with unmeasured runs, because other groups ran before it. Then its cases take their turns.
 */
export async function byThemselves(
  groups: readonly Group[],
  onBlock: (done: number) => void,
): Promise<Summaries> {
  const samples: Samples = new Map();
  const turns = TURNS / BLOCKS_PER_GROUP;
  let done = 0;
  for (let block = 0; block < BLOCKS_PER_GROUP; block++) {
    for (const group of shuffled(groups)) {
      await warmUpGroup(group);
      for (let turn = block * turns + 1; turn <= (block + 1) * turns; turn++) {
        await take(group, samples, untilTurn(turn));
      }
      onBlock(++done);
    }
  }
  return summariesOf(samples);
}

/** Measures all groups in between each other: the groups take turns too, in a random order each time. */
export async function inTurn(groups: readonly Group[], onTurn: (done: number) => void): Promise<Summaries> {
  const samples: Samples = new Map();
  for (let turn = 1; turn <= TURNS; turn++) {
    for (const group of shuffled(groups)) await take(group, samples, untilTurn(turn));
    onTurn(turn);
  }
  return summariesOf(samples);
}

const untilTurn =
  (turn: number) =>
  ({ n }: Case): number =>
    Math.floor((turn * n) / TURNS);

const summariesOf = (samples: Samples): Summaries =>
  new Map([...samples].map(([name, values]) => [name, summarize(values)]));

/** One turn: adds samples until each case has its number of them. */
async function take(
  { cases, alternates }: Group,
  samples: Samples,
  until: (each: Case) => number,
): Promise<void> {
  const open = shuffled(cases).map((each) => {
    const taken = samples.get(each.name) ?? [];
    samples.set(each.name, taken);
    return { taken, until: until(each), sample: each.sample };
  });
  while (open.some(({ taken, until: end }) => taken.length < end)) {
    for (const { taken, until: end, sample } of open) {
      const turnEnd = alternates ? Math.min(end, taken.length + 1) : end;
      while (taken.length < turnEnd) taken.push(await sample());
    }
  }
}
