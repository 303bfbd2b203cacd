/** What the service is to reach, line by line, each as a ratio within one result where it can be one. Pure. */
import type { Measured } from "./result.ts";
import { sum } from "./statistics.ts";
import type { Table } from "./table.ts";

interface Target {
  what: string;
  /** Undefined when it was not measured. */
  value: (measured: Measured) => number | undefined;
  limit: number;
  isLeast?: true;
  unit: string;
  digits: number;
}

const p50 = ({ scenarios }: Measured, name: string) => scenarios[name]?.p50;
const quotient = (value: number | undefined, by: number | undefined) =>
  value === undefined || by === undefined ? undefined : value / by;
const against = (scenario: string, bare: string) => (measured: Measured) =>
  quotient(p50(measured, scenario), measured.bare[bare]?.p50);
const againstHello = (scenario: string) => (measured: Measured) =>
  quotient(p50(measured, scenario), p50(measured, "hello-python"));
const load = ({ loads }: Measured, scenario: string, inFlight: number) =>
  loads.find((row) => row.scenario === scenario && row.inFlight === inFlight);

const ratio = { unit: " x", digits: 2 } as const;
const milliseconds = { unit: " ms", digits: 1 } as const;
const errors = { limit: 0, unit: "", digits: 0 } as const;

export const TARGETS: readonly Target[] = [
  {
    what: "hello-python, p50 against bare python",
    value: against("hello-python", "python"),
    limit: 0.8,
    ...ratio,
  },
  {
    what: "hello-python, p99 against its p50",
    value: (all) => quotient(all.scenarios["hello-python"]?.p99, p50(all, "hello-python")),
    limit: 3,
    ...ratio,
  },
  {
    what: "hello-python, processor time of all components",
    value: ({ cpu }) => cpu.find(({ name }) => name === "hello-python")?.total,
    limit: 12,
    ...milliseconds,
  },
  {
    what: "hello-python, 8 in flight",
    value: (all) => load(all, "hello-python", 8)?.perSecond,
    limit: 140,
    isLeast: true,
    unit: " per second",
    digits: 0,
  },
  {
    what: "hello-python, 8 in flight, errors",
    value: (all) => load(all, "hello-python", 8)?.errors,
    ...errors,
  },
  { what: "pandas, p50 against bare pandas", value: against("pandas", "pandas"), limit: 0.1, ...ratio },
  {
    what: "pandas, 8 in flight",
    value: (all) => load(all, "pandas", 8)?.perSecond,
    limit: 80,
    isLeast: true,
    unit: " per second",
    digits: 0,
  },
  { what: "pandas, 8 in flight, errors", value: (all) => load(all, "pandas", 8)?.errors, ...errors },
  { what: "plot, p50 against bare plot", value: against("plot", "plot"), limit: 0.25, ...ratio },
  {
    what: "hello-javascript, p50 against bare node",
    value: against("hello-javascript", "node"),
    limit: 0.6,
    ...ratio,
  },
  {
    what: "hello-bash, p50 above bare bash",
    value: (all) => {
      const [ours, bare] = [p50(all, "hello-bash"), all.bare.bash?.p50];
      return ours === undefined || bare === undefined ? undefined : ours - bare;
    },
    limit: 6,
    ...milliseconds,
  },
  { what: "one tool call, p50 against hello-python", value: againstHello("calls-1"), limit: 2.5, ...ratio },
  { what: "five tool calls, p50 against hello-python", value: againstHello("calls-5"), limit: 5, ...ratio },
  { what: "gather of five, p50 against hello-python", value: againstHello("gather-5"), limit: 3, ...ratio },
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
    limit: 450,
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

/** Warm starts are what they are for. */
export function targetTable(measured: Measured): Table {
  return {
    title: "Targets",
    note: "With warm starts, on two cores. Ratios are within this run.",
    head: ["what", "measured", "target", "met"],
    rows: TARGETS.flatMap(({ what, value, limit, isLeast, unit, digits }) => {
      const measuredValue = value(measured);
      if (measuredValue === undefined) return [];
      const isMet = isLeast ? measuredValue >= limit : measuredValue <= limit;
      const shown = (number: number) => `${number.toFixed(digits)}${unit}`;
      const word = isLeast ? "at least" : "at most";
      const target = limit === 0 ? "none" : `${word} ${shown(limit)}`;
      return [[what, shown(measuredValue), target, isMet ? "yes" : "NO"]];
    }),
  };
}
