/** Tables of a result, as text for a terminal and as Markdown. Pure. */
import { toolTables } from "./programmatic/tables.ts";
import type { Result } from "./result.ts";
import { SCENARIOS } from "./scenarios.ts";
import type { Summary } from "./statistics.ts";

export interface Table {
  title: string;
  note: string;
  head: readonly string[];
  rows: readonly (readonly string[])[];
}

const ms = (value: number) => (value >= 100 ? value.toFixed(0) : value.toFixed(1));

export function tablesOf(result: Result): Table[] {
  return [
    latencyTable(result),
    bareTable(result),
    loadTable(result),
    fileTable(result),
    ...toolTables(result),
    cpuTable(result),
    memoryTable(result),
  ].filter(({ rows }) => rows.length > 0);
}

function latencyTable(result: Result): Table {
  const rows = SCENARIOS.flatMap(({ name, about, bare }) => {
    const summary = result.scenarios[name];
    if (summary === undefined) return [];
    const other = bare === undefined ? undefined : result.bare[bare];
    const compared =
      other === undefined
        ? ""
        : `${(summary.p50 / other.p50).toFixed(2)} x ${bare}, ${signed(summary.p50 - other.p50)}`;
    return [[name, about, ...spread(summary), compared]];
  });
  return {
    title: "One request at a time",
    note: "Milliseconds from the request to its whole answer, through the public API. The last column compares p50 with the bare command.",
    head: ["scenario", "what", "n", "p50", "p95", "p99", "against bare"],
    rows,
  };
}

function bareTable(result: Result): Table {
  return {
    title: "Bare commands",
    note: "The same programs from the same image without any service, started by a small C program in the same rounds. `true` shows what starting costs by itself.",
    head: ["command", "n", "p50", "p95", "p99", "CPU ms"],
    rows: Object.entries(result.bare).map(([name, summary]) => [
      name,
      ...spread(summary),
      (result.bareCpuMs[name] ?? 0).toFixed(1),
    ]),
  };
}

function loadTable(result: Result): Table {
  return {
    title: "Load",
    note: "hello-python. Concurrency: each client sends its next request when it has its answer. Burst: all at once.",
    head: ["load", "requests", "per second", "p50", "p95", "p99", "errors"],
    rows: result.loads.map(({ name, requests, perSecond, latency, errors }) => [
      name,
      String(requests),
      perSecond.toFixed(1),
      ...spread(latency).slice(1),
      String(errors),
    ]),
  };
}

function fileTable({ files = [] }: Result): Table {
  const speed = (mib: number, { p50 }: Summary) => (mib / p50) * 1000;
  return {
    title: "File path",
    note: "One client, through the public API (two processes, form, SHA-256) and through a bare Fastify server in the same rounds. Both sync a file and its directory before they answer. MiB/s from p50; processor milliseconds per MiB without the client.",
    head: ["what", "n", "MiB/s", "bare MiB/s", "ratio", "CPU ms/MiB", "bare CPU ms/MiB"],
    rows: files.map(({ name, mib, ms, bareMs, cpuPerMib, bareCpuPerMib }) => [
      name,
      String(ms.n),
      speed(mib, ms).toFixed(0),
      speed(mib, bareMs).toFixed(0),
      (bareMs.p50 / ms.p50).toFixed(2),
      cpuPerMib.toFixed(2),
      bareCpuPerMib.toFixed(2),
    ]),
  };
}

function cpuTable(result: Result): Table {
  const components = [...new Set(result.cpu.flatMap((row) => Object.keys(row.components)))];
  return {
    title: "Processor time per request",
    note: "Milliseconds of all our processes and the programs that they started (under jaild), per request.",
    head: ["scenario", "total", ...components],
    rows: result.cpu.map((row) => [
      row.name,
      row.total.toFixed(1),
      ...components.map((component) => (row.components[component] ?? 0).toFixed(1)),
    ]),
  };
}

function memoryTable(result: Result): Table {
  const entries = Object.entries(result.idleMemoryMib);
  const total = entries.reduce((sum, [, mib]) => sum + mib, 0);
  return {
    title: "Memory when idle",
    note: "Proportional set size in MiB.",
    head: ["component", "MiB"],
    rows:
      entries.length === 0
        ? []
        : [...entries.map(([name, mib]) => [name, mib.toFixed(0)]), ["total", total.toFixed(0)]],
  };
}

/** p50 of two results side by side. */
export function comparisonTable(before: Result, after: Result): Table {
  const rows: string[][] = [];
  const add = (name: string, old: number | undefined, now: number | undefined) => {
    if (old === undefined || now === undefined) return;
    rows.push([name, ms(old), ms(now), `${((now / old - 1) * 100).toFixed(0)} %`]);
  };
  for (const name of Object.keys(after.scenarios))
    add(name, before.scenarios[name]?.p50, after.scenarios[name]?.p50);
  for (const name of Object.keys(after.bare))
    add(`bare ${name}`, before.bare[name]?.p50, after.bare[name]?.p50);
  for (const row of after.cpu)
    add(`CPU ${row.name}`, before.cpu.find(({ name }) => name === row.name)?.total, row.total);
  for (const row of after.loads) {
    add(
      `per second, ${row.name}`,
      before.loads.find(({ name }) => name === row.name)?.perSecond,
      row.perSecond,
    );
  }
  return {
    title: `${before.date} against ${after.date}`,
    note: "p50 in milliseconds; a machine drifts, so look at the bare commands first.",
    head: ["what", "before", "after", "change"],
    rows,
  };
}

export function asText({ title, note, head, rows }: Table): string {
  const widths = head.map((cell, column) =>
    Math.max(cell.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        isNumber(rows, column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ");
  return `${title}\n${note}\n\n${[head, ...rows].map((row) => `  ${line(row)}`.trimEnd()).join("\n")}\n`;
}

export function asMarkdown({ title, note, head, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, column) => (isNumber(rows, column) ? "---:" : "---"));
  return `## ${title}\n\n${note}\n\n${[line(head), line(rule), ...rows.map(line)].join("\n")}\n`;
}

function isNumber(rows: readonly (readonly string[])[], column: number): boolean {
  return rows.every((row) => /^-?[\d.]+( %)?$/.test(row[column] ?? ""));
}

function spread({ n, p50, p95, p99 }: Summary): string[] {
  return [String(n), ms(p50), ms(p95), ms(p99)];
}

function signed(value: number): string {
  return `${value >= 0 ? "+" : "-"}${ms(Math.abs(value))} ms`;
}
