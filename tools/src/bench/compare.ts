/**
 * Compares two results. A machine drifts, so each change is divided by the change of the bare command beside it. The rest
 * counts as a change only when samples that vary as these do would hardly show it by chance. Pure.
 */
import { EVERY_SCENARIO } from "./choice.ts";
import type { LoadRow } from "./loads.ts";
import type { CpuRow } from "./measure.ts";
import type { Measured, Result } from "./result.ts";
import type { SessionRow } from "./sessions/measure.ts";
import { addedMs, caseCells } from "./sessions/tables.ts";
import { MODES } from "./settings.ts";
import { interval95, meanOf, quantileOf, type Statistic } from "./statistics.ts";
import { ms, type Table } from "./table.ts";

/** The bare command with which a scenario is compared that has none of its own. */
const REFERENCE = "python";
/** A smaller difference never counts as a change. */
const LEAST = 0.02;

export interface Change {
  /** The second value divided by the first, without the drift. */
  ratio: number;
  isNoise: boolean;
}

type Samples = readonly number[];

/** The change of a statistic of samples, without the change of the median of the reference samples. */
export function changeOf(
  [before, after]: readonly [Samples, Samples],
  reference: readonly [Samples, Samples],
  statistic: Statistic,
): Change {
  return changeOfSets([[before], [after]], reference, ([samples = []]) => statistic(samples));
}

/** The same for a number that is computed from several sets of samples. */
export function changeOfSets(
  [before, after]: readonly [readonly Samples[], readonly Samples[]],
  reference: readonly [Samples, Samples],
  statistic: (sets: readonly Samples[]) => number,
): Change {
  const middle = quantileOf(0.5);
  const combine = (sets: readonly Samples[]) => {
    const [first, second] = [sets.slice(0, before.length), sets.slice(before.length, -2)];
    const [drifting = [], drifted = []] = sets.slice(-2);
    return statistic(second) / statistic(first) / (middle(drifted) / middle(drifting));
  };
  const sets = [...before, ...after, ...reference];
  const ratio = combine(sets);
  const [low, high] = interval95(sets, combine);
  return { ratio, isNoise: (low <= 1 && high >= 1) || Math.abs(ratio - 1) < LEAST };
}

export function comparisonTables(before: Result, after: Result): Table[] {
  const title = `${before.date} (${before.conditions.commit}) against ${after.date} (${after.conditions.commit})`;
  return MODES.flatMap((mode) => {
    const [first, second] = [before.modes[mode], after.modes[mode]];
    if (first === undefined || second === undefined) return [];
    const [firstMixed, secondMixed] = [inMixture(first), inMixture(second)];
    return [
      { ...scenarioTable(first, second), title: `${title}, ${mode}` },
      { ...scenarioTable(firstMixed, secondMixed), title: `Each kind in between all others, ${mode}` },
      { ...loadTable(first, second), title: `Sustained load, ${mode}` },
      { ...sessionTable(first, second), title: `Sessions, ${mode}` },
      { ...driftTable(first, second), title: `The machine, ${mode}` },
    ];
  }).filter(({ rows }) => rows.length > 0);
}

/** Processor time is not measured there. */
const inMixture = ({ mixed }: Measured): Measured => ({
  ...(mixed ?? { bare: {}, scenarios: {} }),
  ...{ bareCpuMs: {}, cpu: [], loads: [] },
});

const NOTE =
  "Milliseconds before and after; then the change, divided by the change of the bare command beside it. ≈: within noise (the 95 % interval of the bootstrap has 1, or less than 2 %).";

function scenarioTable(before: Measured, after: Measured): Table {
  const rows = EVERY_SCENARIO.flatMap(({ name, bare }) => {
    const [first, second] = [before.scenarios[name], after.scenarios[name]];
    const reference = referenceOf(before, after, bare);
    if (first === undefined || second === undefined || reference === undefined) return [];
    const samples = [first.samples, second.samples] as const;
    return [
      [
        name,
        ...cells(first.p50, second.p50, changeOf(samples, reference, quantileOf(0.5))),
        ...cells(first.p95, second.p95, changeOf(samples, reference, quantileOf(0.95))),
        ...cpuCells(rowOf(before, name), rowOf(after, name), cpuReference(before, after, bare)),
      ],
    ];
  });
  return {
    title: "",
    note: NOTE,
    head: ["scenario", "p50", "change", "p95", "change", "CPU", "change"],
    rows,
  };
}

const rowOf = ({ cpu }: Measured, name: string) => cpu.find((row) => row.name === name);

function referenceOf(
  before: Measured,
  after: Measured,
  name: string = REFERENCE,
): readonly [Samples, Samples] | undefined {
  const [first, second] = [before.bare[name], after.bare[name]];
  if (first !== undefined && second !== undefined) return [first.samples, second.samples];
  return name === REFERENCE ? undefined : referenceOf(before, after);
}

/** The same for processor time, which does not grow when a command waits for others. */
function cpuReference(
  before: Measured,
  after: Measured,
  name: string = REFERENCE,
): readonly [Samples, Samples] {
  const [first, second] = [before.bareCpuMs[name], after.bareCpuMs[name]];
  if (first !== undefined && second !== undefined) return [[first], [second]];
  return name === REFERENCE ? [[1], [1]] : cpuReference(before, after);
}

function cells(before: number, after: number, { ratio, isNoise }: Change): string[] {
  return [`${ms(before)} → ${ms(after)}`, `${ratio.toFixed(2)} x${isNoise ? " ≈" : ""}`];
}

function cpuCells(
  before: CpuRow | undefined,
  after: CpuRow | undefined,
  reference: readonly [Samples, Samples],
): string[] {
  if (before === undefined || after === undefined) return ["", ""];
  return cells(before.total, after.total, changeOf([before.parts, after.parts], reference, meanOf));
}

function loadTable(before: Measured, after: Measured): Table {
  const reference = referenceOf(before, after);
  const same = (row: LoadRow) =>
    before.loads.find(({ scenario, inFlight }) => scenario === row.scenario && inFlight === row.inFlight);
  return {
    title: "",
    note: "Requests per second before and after; then the change, divided by the change of bare python. ≈: within noise.",
    head: ["scenario", "in flight", "per second", "change"],
    rows: after.loads.flatMap((row) => {
      const first = same(row);
      if (first === undefined || reference === undefined) return [];
      // With a number in flight that stays the same, throughput is the inverse of the mean latency.
      const samples = [row.latency.samples, first.latency.samples] as const;
      const drift = [reference[1], reference[0]] as const;
      const change = changeOf(samples, drift, meanOf);
      return [[row.scenario, String(row.inFlight), ...cells(first.perSecond, row.perSecond, change)]];
    }),
  };
}

function sessionTable(before: Measured, after: Measured): Table {
  const reference = referenceOf(before, after);
  const sets = ({ ms: kept, withoutMs }: SessionRow) => [kept.samples, withoutMs.samples];
  const added = ([kept = [], without = []]: readonly Samples[]) =>
    quantileOf(0.5)(kept) - quantileOf(0.5)(without);
  return {
    title: "",
    note: "Milliseconds that a session adds to the median of a request, before and after; then the change, divided by the change of bare python. ≈: within noise.",
    head: ["the run before left", "this run changes", "added", "change"],
    rows: (after.sessions ?? []).flatMap((row) => {
      const first = before.sessions?.find(
        ({ state, changed }) => state === row.state && changed === row.changed,
      );
      if (first === undefined || reference === undefined) return [];
      const [addedBefore, addedAfter] = [addedMs(first), addedMs(row)];
      const [times, change] = cells(
        addedBefore,
        addedAfter,
        changeOfSets([sets(first), sets(row)], reference, added),
      );
      // What adds too little to be seen may come out below zero, and has no ratio.
      const hasRatio = addedBefore > 0 && addedAfter > 0;
      return [[...caseCells(row), times ?? "", hasRatio ? (change ?? "") : ""]];
    }),
  };
}

function driftTable(before: Measured, after: Measured): Table {
  return {
    title: "",
    note: "The bare commands, p50 in milliseconds: how much faster or slower the machine itself was.",
    head: ["command", "before", "after", "change"],
    rows: Object.entries(after.bare).flatMap(([name, { p50 }]) => {
      const first = before.bare[name]?.p50;
      return first === undefined ? [] : [[name, ms(first), ms(p50), `${(p50 / first).toFixed(2)} x`]];
    }),
  };
}
