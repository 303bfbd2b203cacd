/** A file of rows as a table: the first ones, as text. */
import { parse } from "papaparse";
import { useEffect, useState } from "preact/hooks";
import type { Shown } from "./files.tsx";

const MAX_ROWS = 100;
const MAX_COLUMNS = 30;
/** Larger files are only offered for download. */
const MAX_BYTES = 2 ** 20;

export const isTable = ({ name, size }: Shown): boolean =>
  /\.(csv|tsv|json)$/i.test(name) && (size ?? 0) <= MAX_BYTES;

/** Undefined: it has no rows. The first row has the names of the columns. */
export function rowsOf(name: string, text: string): string[][] | undefined {
  if (!name.toLowerCase().endsWith(".json")) {
    const { data } = parse<string[]>(text, { preview: MAX_ROWS + 1, skipEmptyLines: true });
    return data.length === 0 ? undefined : data;
  }
  const value: unknown = JSON.parse(text);
  if (!Array.isArray(value)) return undefined;
  const records = value.slice(0, MAX_ROWS).filter((row) => typeof row === "object" && row !== null);
  const columns = [...new Set(records.flatMap((row) => Object.keys(row)))];
  if (columns.length === 0) return undefined;
  return [columns, ...records.map((row) => columns.map((column) => cell(row[column])))];
}

const cell = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);

export function Table({ file }: { file: Shown }) {
  const [rows, show] = useState<string[][]>();
  useEffect(() => {
    let isGone = false;
    const load = async () => {
      const read = rowsOf(file.name, await file.text());
      if (!isGone) show(read);
    };
    // A file that cannot be read as a table can still be downloaded.
    load().catch(() => undefined);
    return () => {
      isGone = true;
    };
  }, [file]);
  const [head, ...body] = rows ?? [];
  if (head === undefined) return null;
  return (
    <section class="scrolls" aria-label={`Table ${file.name}`}>
      <table>
        <thead>
          <tr>
            {head.slice(0, MAX_COLUMNS).map((name, at) => (
              <th key={at} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.map((row, at) => (
            <tr key={at}>
              {row.slice(0, MAX_COLUMNS).map((text, column) => (
                <td key={column}>{text}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
