/** docs/numbers.md: generated from one committed result, so that every number on it has its conditions. Pure. */
import type { Result } from "./result.ts";
import { asMarkdown, tablesOf } from "./tables.ts";

export function numbersPage(result: Result, source: string): string {
  const { conditions } = result;
  const runtimes = Object.entries(conditions.runtimes).map(([name, version]) => `${name} ${version}`);
  const facts = [
    `- Date: ${result.date}; commit ${conditions.commit}`,
    `- Command: \`${result.command}\` (n = ${result.n})`,
    `- Machine: ${conditions.cpu}, ${conditions.cores} cores, ${conditions.memoryGib} GiB; load average ${conditions.loadBefore} before the run; the load generator shares it`,
    `- System: ${conditions.system}, kernel ${conditions.kernel}, Node ${conditions.node}; ${runtimes.join(", ")}`,
    `- Mode: ${result.mode}`,
  ];
  return `<!-- Generated from ${source} by ./svc bench --page ${source}; do not edit. -->
# Numbers

Measured by \`./svc bench\`, which starts a copy of its own and runs the service and the bare commands in the same rounds in random
order. Absolute times belong to the machine and its moment; compare within a table.

${facts.join("\n")}

${tablesOf(result).map(asMarkdown).join("\n")}`;
}
