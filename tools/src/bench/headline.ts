/** The opening of docs/numbers.md: five numbers that users want, each beside the value with which it is compared. Pure. */
import type { Measured } from "./result.ts";
import { sum } from "./statistics.ts";
import { ms, type Table } from "./table.ts";

/** Programs that are compared with the same program started by hand. */
const PROGRAMS = [
  { what: "print(1) in Python", scenario: "hello-python", bare: "python" },
  { what: "a pandas program", scenario: "pandas", bare: "pandas" },
  { what: "a matplotlib figure", scenario: "plot", bare: "plot" },
] as const;
const IN_FLIGHT = 8;

export function headlineTable(measured: Measured): Table {
  const programs = PROGRAMS.flatMap(({ what, scenario, bare }) => {
    const [ours, byHand] = [measured.scenarios[scenario]?.p50, measured.bare[bare]?.p50];
    if (ours === undefined || byHand === undefined) return [];
    return [[what, `${ms(ours)} ms`, `${ms(byHand)} ms`, `${(byHand / ours).toFixed(1)} times as fast`]];
  });
  const load = measured.loads.find((row) => row.scenario === "hello-python" && row.inFlight === IN_FLIGHT);
  const idle = measured.memory && sum(Object.values(measured.memory.idleMib));
  return {
    title: "In short",
    note: "Medians through the public API with warm starts, each run in a new jail; beside them the same program started by hand from the same image.",
    head: ["what", "svc", "by hand", ""],
    rows: [
      ...programs,
      ...(load === undefined
        ? []
        : [
            ["print(1), 8 requests in flight", `${load.perSecond.toFixed(0)} per second`, "", "on all cores"],
          ]),
      ...(idle === undefined ? [] : [["memory of all components, idle", `${idle.toFixed(0)} MiB`, "", ""]]),
    ],
  };
}
