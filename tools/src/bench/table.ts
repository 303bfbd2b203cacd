/** A table, as text for a terminal and as Markdown. Pure. */
import type { Summary } from "./statistics.ts";

export interface Table {
  title: string;
  note: string;
  head: readonly string[];
  rows: readonly (readonly string[])[];
}

export const ms = (value: number) => (value >= 100 ? value.toFixed(0) : value.toFixed(1));

export const signed = (value: number) => `${value >= 0 ? "+" : "-"}${ms(Math.abs(value))} ms`;

export const times = (value: number | undefined, other: number | undefined) =>
  value === undefined || other === undefined ? "" : `${(value / other).toFixed(2)} x`;

export function spread({ n, p50, p95, p99 }: Summary): string[] {
  return [String(n), ms(p50), ms(p95), ms(p99)];
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
