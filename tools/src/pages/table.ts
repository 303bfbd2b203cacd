/** A table of a reference page. */
const cell = (text: string) => text.replaceAll("|", "\\|");

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n");
}
