/** The table of sessions. Pure. */
import type { Measured } from "../result.ts";
import type { Summary } from "../statistics.ts";
import { ms, signed, type Table } from "../table.ts";
import type { SessionRow } from "./measure.ts";

/** With fewer samples, p95 is the slowest sample or the second slowest. */
const LEAST_FOR_P95 = 40;

/** What the run before left, and what the measured run changes of it. */
export const caseCells = ({ state, changed }: SessionRow): string[] => [
  state,
  changed ? "all of it" : "nothing",
];

export const addedMs = ({ ms: kept, withoutMs }: SessionRow): number => kept.p50 - withoutMs.p50;

export function sessionTable({ sessions = [] }: Measured): Table {
  return {
    title: "Sessions",
    note: `Milliseconds of the same request on two copies in turn: on one it continues a session (\`SVC_PERSIST_SESSIONS=true\`), the other keeps none. Both were started for this alone. Added: the difference of the medians, and of p95 where there are ${LEAST_FOR_P95} samples. Files and DataFrames are random bytes, which do not compress; files lie in a hidden directory, so that they are no outputs.`,
    head: [
      "the run before left",
      "this run changes",
      "n",
      "without: p50",
      "with: p50",
      "added",
      "without: p95",
      "with: p95",
      "added to p95",
    ],
    rows: sessions.map((row) => [
      ...caseCells(row),
      String(row.ms.n),
      ms(row.withoutMs.p50),
      ms(row.ms.p50),
      signed(addedMs(row)),
      ...p95Cells(row.withoutMs, row.ms),
    ]),
  };
}

function p95Cells(without: Summary, kept: Summary): string[] {
  if (kept.n < LEAST_FOR_P95) return ["", "", ""];
  return [ms(without.p95), ms(kept.p95), signed(kept.p95 - without.p95)];
}
