/** The targets of every published result. Each is a ratio within one result where it can be one. Pure. */
import type { Latencies, Measured } from "./result.ts";
import { sum } from "./statistics.ts";
import type { Table } from "./table.ts";

/** Undefined when it was not measured. */
type Value<T> = (measured: T) => number | undefined;

/** A target of one request at a time is also evaluated in between all others. */
type Target = TargetOf & ({ latency: Value<Latencies> } | { value: Value<Measured> });

interface TargetOf {
  what: string;
  limit: number;
  isLeast?: true;
  unit: string;
  digits: number;
}

const p50 = ({ scenarios }: Latencies, name: string) => scenarios[name]?.p50;
const quotient = (value: number | undefined, by: number | undefined) =>
  value === undefined || by === undefined ? undefined : value / by;
const against =
  (scenario: string, bare: string): Value<Latencies> =>
  (latencies) =>
    quotient(p50(latencies, scenario), latencies.bare[bare]?.p50);
const load = ({ loads }: Measured, scenario: string, inFlight: number) =>
  loads.find((row) => row.scenario === scenario && row.inFlight === inFlight);

const ratio = { unit: " x", digits: 2 } as const;
const milliseconds = { unit: " ms", digits: 1 } as const;
const errors = { limit: 0, unit: "", digits: 0 } as const;

export const TARGETS: readonly Target[] = [
  {
    what: "hello-python, p50 against bare python",
    latency: against("hello-python", "python"),
    limit: 1,
    ...ratio,
  },
  {
    what: "hello-python, p99 against its p50",
    latency: (all) => quotient(all.scenarios["hello-python"]?.p99, p50(all, "hello-python")),
    limit: 3,
    ...ratio,
  },
  {
    what: "hello-python, processor time of all components",
    value: ({ cpu }) => cpu.find(({ name }) => name === "hello-python")?.total,
    limit: 12.5,
    ...milliseconds,
  },
  {
    what: "hello-python, 8 in flight",
    value: (all) => load(all, "hello-python", 8)?.perSecond,
    limit: 150,
    isLeast: true,
    unit: " per second",
    digits: 0,
  },
  {
    what: "hello-python, 8 in flight, errors",
    value: (all) => load(all, "hello-python", 8)?.errors,
    ...errors,
  },
  { what: "pandas, p50 against bare pandas", latency: against("pandas", "pandas"), limit: 0.1, ...ratio },
  {
    what: "pandas, 8 in flight",
    value: (all) => load(all, "pandas", 8)?.perSecond,
    limit: 80,
    isLeast: true,
    unit: " per second",
    digits: 0,
  },
  { what: "pandas, 8 in flight, errors", value: (all) => load(all, "pandas", 8)?.errors, ...errors },
  { what: "plot, p50 against bare plot", latency: against("plot", "plot"), limit: 0.15, ...ratio },
  {
    what: "hello-javascript, p50 against bare node",
    latency: against("hello-javascript", "node"),
    limit: 0.5,
    ...ratio,
  },
  {
    what: "hello-bash, p50 above bare bash",
    latency: (all) => {
      const [ours, bare] = [p50(all, "hello-bash"), all.bare.bash?.p50];
      return ours === undefined || bare === undefined ? undefined : ours - bare;
    },
    limit: 7,
    ...milliseconds,
  },
  { what: "100 at once, errors", value: ({ burst }) => burst?.errors, ...errors },
  {
    what: "100 at once, last answer against the ideal",
    value: ({ burst }) => burst?.againstIdeal.p50,
    limit: 1.3,
    ...ratio,
  },
  {
    what: "memory when idle",
    value: ({ memory }) => (memory === undefined ? undefined : sum(Object.values(memory.idleMib))),
    limit: 350,
    unit: " MiB",
    digits: 0,
  },
  {
    what: "memory of one more pandas program",
    value: ({ memory }) => memory?.perProgramMib,
    limit: 25,
    unit: " MiB",
    digits: 1,
  },
];

/** The targets are for warm starts. */
export function targetTable(measured: Measured): Table {
  const { mixed } = measured;
  return {
    title: "Targets",
    note: "With warm starts, on two cores. Ratios are within this run. One request at a time is measured of each kind by itself, and judged so; beside it stands what the same kind reaches in between all others.",
    head: ["what", "measured", "in between all others", "target", "met"],
    rows: TARGETS.flatMap((target) => {
      const value = "latency" in target ? target.latency(measured) : target.value(measured);
      if (value === undefined) return [];
      const inMixture = "latency" in target && mixed !== undefined ? target.latency(mixed) : undefined;
      const { what, limit, isLeast, unit, digits } = target;
      const isMet = isLeast ? value >= limit : value <= limit;
      const shown = (number: number) => `${number.toFixed(digits)}${unit}`;
      const word = isLeast ? "at least" : "at most";
      const bound = limit === 0 ? "none" : `${word} ${shown(limit)}`;
      return [
        [what, shown(value), inMixture === undefined ? "" : shown(inMixture), bound, isMet ? "yes" : "NO"],
      ];
    }),
  };
}
