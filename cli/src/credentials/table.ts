/** Shows API keys as a table for people. Control characters of a record cannot reach the terminal. Pure. */
import { type ApiKeyRecord, apiKeyState } from "@svc/contracts";

const HEAD = ["ID", "NAME", "TENANT", "USER", "PLAN", "CREATED", "EXPIRES", "STATE"];
const MAX_CELL = 40;

export function tableOf(records: readonly ApiKeyRecord[], nowMs: number): string {
  const rows = records.map((record) => [
    record.id,
    record.name,
    record.tenant,
    record.user,
    record.plan ?? "-",
    dayOf(record.created_at),
    record.expires_at === undefined ? "never" : dayOf(record.expires_at),
    apiKeyState(record, nowMs),
  ]);
  const cells = [HEAD, ...rows].map((row) => row.map(cell));
  const widths = HEAD.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((text, at) => text.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** In UTC, like the logs. */
function dayOf(instant: string): string {
  return new Date(instant).toISOString().slice(0, 10);
}

function cell(text: string): string {
  const plain = text.replaceAll(/\p{C}/gu, "?");
  return plain.length > MAX_CELL ? `${plain.slice(0, MAX_CELL - 1)}…` : plain;
}
