/** Shows the first rows of a file as a table of text. */
import { useEffect, useState } from "preact/hooks";
import type { Shown } from "./files.tsx";
import { rowsOf } from "./rows.ts";

/** Larger files can only be downloaded. */
const MAX_BYTES = 2 ** 20;

export const isTable = ({ name, size }: Shown): boolean =>
  /\.(csv|tsv|json)$/i.test(name) && (size ?? 0) <= MAX_BYTES;

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
            {head.map((name, at) => (
              <th key={at} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.map((row, at) => (
            <tr key={at}>
              {row.map((text, column) => (
                <td key={column}>{text}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
