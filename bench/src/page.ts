/** docs/numbers.md and its plot: generated from committed results, so that every number has its conditions. Pure. */
import { describeFit, plotCalls } from "./programmatic/plot.ts";
import { growth } from "./programmatic/tables.ts";
import type { Result } from "./result.ts";
import { asMarkdown, tablesOf } from "./tables.ts";

export interface Source {
  result: Result;
  /** Where the result lies. */
  path: string;
}

export const PLOT = "numbers-calls.svg";

/** With fewer points there is no line to show. */
const LEAST_POINTS = 3;

export function numbersPage(sources: readonly Source[]): string {
  const paths = sources.map(({ path }) => path).join(" ");
  const [first, ...others] = sources;
  return `<!-- Generated from ${paths} by ./svc bench --page ${paths}; do not edit. -->
# Numbers

Measured by \`./svc bench\`, which starts a copy of its own and runs the service and the bare commands in the same rounds in random
order. Absolute times belong to the machine and its moment; compare within a table.

${[...(first === undefined ? [] : [partOf(first)]), ...others.map((other) => `# A run of its own\n\n${partOf(other)}`)].join("\n")}`;
}

/** The plot over the number of calls; of the last result that has enough of them. */
export function numbersPlot(sources: readonly Source[]): string | undefined {
  const found = sources.findLast(({ result }) => growth(result).length >= LEAST_POINTS);
  return found === undefined ? undefined : plotCalls(growth(found.result));
}

function partOf({ result }: Source): string {
  const { conditions } = result;
  const runtimes = Object.entries(conditions.runtimes).map(([name, version]) => `${name} ${version}`);
  const facts = [
    `- Date: ${result.date}; commit ${conditions.commit}`,
    `- Command: \`${result.command}\` (n = ${result.n})`,
    `- Machine: ${conditions.cpu}, ${conditions.cores} cores, ${conditions.memoryGib} GiB; load average ${conditions.loadBefore} before the run; the load generator shares it`,
    `- System: ${conditions.system}, kernel ${conditions.kernel}, Node ${conditions.node}; ${runtimes.join(", ")}`,
    `- Mode: ${result.mode}`,
  ];
  return `${facts.join("\n")}\n\n${[...tablesOf(result).map(asMarkdown), ...plotOf(result)].join("\n")}`;
}

function plotOf(result: Result): string[] {
  const points = growth(result);
  return points.length < LEAST_POINTS ? [] : [`![${describeFit(points)}](${PLOT})\n`];
}
