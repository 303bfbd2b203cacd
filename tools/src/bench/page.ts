/** docs/numbers.md: generated from committed results, so that every number has its conditions. Pure. */
import { type Drawing, drawingsOf, drawingsOfSoak } from "./charts.ts";
import { headlineTable } from "./headline.ts";
import type { OverloadResult } from "./overload/run.ts";
import { overloadTables } from "./overload/tables.ts";
import { BUSY, isBusy, type Origin, type Result } from "./result.ts";
import { MODE_MEANING, MODES, type Mode } from "./settings.ts";
import type { SoakResult } from "./soak/run.ts";
import { soakTables } from "./soak/tables.ts";
import { asMarkdown, type Table } from "./table.ts";
import { partTablesOf, tablesOf } from "./tables.ts";

export type AnyResult = Result | SoakResult | OverloadResult;

export interface Source<T> {
  result: T;
  /** The path of the result. */
  path: string;
}

export interface Sources {
  bench: Source<Result>;
  /** Results of separate measurements. Each is a chapter with its own conditions. */
  others: readonly Source<AnyResult>[];
}

/** The folder of the charts, beside the page. */
export const CHARTS = "numbers";

export function drawings({ bench, others }: Sources): Drawing[] {
  const apart = others.flatMap(({ result }) => (result.kind === "soak" ? drawingsOfSoak(result) : []));
  return [...drawingsOf(bench.result), ...apart];
}

export function numbersPage({ bench, others }: Sources): string {
  const paths = [bench, ...others].map(({ path }) => path).join(" ");
  const { result } = bench;
  const [targets, ...tables] = tablesOf(result);
  const modes = MODES.filter((mode) => result.modes[mode] !== undefined);
  return `<!-- Generated from ${paths} by ./svc bench --page ${paths}; do not edit. -->
# Numbers

${opening(result)}## How this was measured

Measured by \`./svc bench\`, which starts copies of its own and runs the service and the bare commands that it is compared with in
short turns (hello-javascript and bare Node one by one), in a random order, after a warm-up: first each kind of request by itself, in
two blocks at different times, then with warm starts all kinds in turn, which has a table of its own. Absolute times belong to the machine
and its moment; compare within a table. \`./svc bench --compare BEFORE AFTER\` compares two results.

${factsOf(result)}
- Command: \`${result.command}\` (n = ${result.n}, ${result.seconds} s in all)
${modes.map((mode) => `- ${modeFact(mode, result.settings[mode])}`).join("\n")}

${[...(targets === undefined ? [] : [asMarkdown(targets)]), gallery(drawingsOf(result).slice(result.modes.warm === undefined ? 0 : 1)), ...tables.map(asMarkdown)].join("\n")}${others.map(({ result: other }) => chapter(other)).join("")}`;
}

/** The numbers and the one chart that most readers came for. */
function opening(result: Result): string {
  const measured = result.modes.warm;
  if (measured === undefined) return "";
  const [chart] = drawingsOf(result);
  return `${asMarkdown(headlineTable(measured))}\n${chart === undefined ? "" : `${image(chart)}\n\n`}`;
}

function chapter(result: AnyResult): string {
  const { title, facts, parts } = contentOf(result);
  return `
# ${title}

${factsOf(result)}
- Command: \`${result.command}\` (${result.seconds} s)
${facts.map((fact) => `- ${fact}`).join("\n")}

${parts.join("\n")}`;
}

interface Content {
  title: string;
  facts: string[];
  parts: string[];
}

function contentOf(result: AnyResult): Content {
  switch (result.kind) {
    case "soak": {
      const [first, ...others] = soakTables(result);
      const parts = [...markdown(first), gallery(drawingsOfSoak(result)), ...others.map(asMarkdown)];
      return { title: "Soak", facts: [modeFact(result.mode, result.settings)], parts };
    }
    case "overload":
      return {
        title: "Overload",
        facts: [`With authentication; ${variablesOf(result.settings)}; all else by default`],
        parts: overloadTables(result).map(asMarkdown),
      };
    case "bench": {
      const modes = MODES.filter((mode) => result.modes[mode] !== undefined);
      return {
        title: "Measured apart",
        facts: modes.map((mode) => modeFact(mode, result.settings[mode])),
        parts: partTablesOf(result).map(asMarkdown),
      };
    }
  }
}

const markdown = (table: Table | undefined) => (table === undefined ? [] : [asMarkdown(table)]);

function factsOf({ date, conditions }: Origin): string {
  const runtimes = Object.entries(conditions.runtimes).map(([name, version]) => `${name} ${version}`);
  return `- Date: ${date}; commit ${conditions.commit}
- Machine: ${conditions.cpu}, ${conditions.cores} cores, ${conditions.memoryGib} GiB; load average ${conditions.loadBefore} before the run; the load generator shares it${isBusy(conditions) ? `\n- **${BUSY}**` : ""}
- System: ${conditions.system}, kernel ${conditions.kernel}, Node ${conditions.node}; ${runtimes.join(", ")}`;
}

function modeFact(mode: Mode, settings: Readonly<Record<string, string>> = {}): string {
  return `Mode "${mode}": local (\`./svc up\`), a new jail for each run, ${MODE_MEANING[mode]}; ${variablesOf(settings)}; all else by default`;
}

const variablesOf = (settings: Readonly<Record<string, string>>) =>
  Object.entries(settings)
    .map(([name, value]) => `\`${name}=${value}\``)
    .join(", ");

const image = ({ name, title }: Drawing) => `![${title}](${CHARTS}/${name}.svg)`;

/** Two charts in a row. */
function gallery(all: readonly Drawing[]): string {
  const cells = all.map(image);
  const rows = cells.flatMap((cell, index) =>
    index % 2 === 0 ? [`| ${cell} | ${cells[index + 1] ?? ""} |`] : [],
  );
  if (rows.length === 0) return "";
  return `| charts | |\n| --- | --- |\n${rows.join("\n")}\n`;
}
