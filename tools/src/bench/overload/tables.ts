/** What a flood showed, as tables. Pure. */
import type { Summary } from "../statistics.ts";
import { ms, type Table, times } from "../table.ts";
import type { OverloadResult } from "./run.ts";

const latency = ({ n, p50, p99, max }: Summary) => [String(n), ms(p50), ms(p99), ms(max)];

export function overloadTables(result: OverloadResult): Table[] {
  const { flood, quiet, beside, after, mib, firstAfterMs } = result;
  const inFlood = flood.admittedPerSecond + beside.n / flood.seconds;
  const codes = Object.entries(flood.refusals).map(([name, count]) => `${count} times ${name}`);
  return [
    {
      title: "Overload",
      note: `One principal offers ten times what the copy can do for ${flood.seconds} s: ${flood.sent} requests. Milliseconds.`,
      head: ["answers", "n", "p50", "p99", "most"],
      rows: [
        ["admitted", ...latency(flood.admittedMs)],
        ["refused", ...latency(flood.refusalMs)],
      ],
    },
    {
      title: "Another principal, one run after the other",
      note: "Milliseconds of a hello in Python.",
      head: ["when", "n", "p50", "p99", "most", "p99 against quiet"],
      rows: [
        ["quiet", ...latency(quiet), ""],
        ["beside the flood", ...latency(beside), times(beside.p99, quiet.p99)],
        ["afterwards", ...latency(after), times(after.p99, quiet.p99)],
      ],
    },
    {
      title: "The copy",
      note: `While the flood goes to a server that does nothing but refuse, the machine has the generator's work alone besides. Refused: ${codes.join(", ") || "nothing"}; without Retry-After: ${flood.withoutRetryAfter}.`,
      head: ["what", "before", "beside a bare server's refusals", "in the flood"],
      rows: [
        [
          "runs per second, both principals",
          result.bestPerSecond.toFixed(0),
          result.besideBarePerSecond.toFixed(0),
          `${inFlood.toFixed(0)} (${times(inFlood, result.besideBarePerSecond)})`,
        ],
        ["memory, MiB", mib.before.toFixed(0), "", `${mib.first.toFixed(0)} to ${mib.last.toFixed(0)}`],
        ["first run afterwards, ms", ms(quiet.p50), "", ms(firstAfterMs)],
      ],
    },
  ];
}
