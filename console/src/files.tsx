/** Shows files of a run or of uploads for download, and displays pictures. Every picture, also SVG, is only ever an image element. */
import { useEffect, useState } from "preact/hooks";
import type { Readable } from "../../packages/client/src/results.ts";
import { isTable, Table } from "./table.tsx";

export type Shown = Readable & { id: string; name: string; size?: number };

const PICTURES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  svg: "image/svg+xml",
};
const typeOf = (name: string) => PICTURES[name.slice(name.lastIndexOf(".") + 1).toLowerCase()];

export function save(name: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url));
}

function Picture({ file, type }: { file: Shown; type: string }) {
  const [url, show] = useState<string>();
  useEffect(() => {
    let made: string | undefined;
    let isGone = false;
    const load = async () => {
      const bytes = (await file.download()) as Uint8Array<ArrayBuffer>;
      if (isGone) return;
      made = URL.createObjectURL(new Blob([bytes], { type }));
      show(made);
    };
    load().catch(() => undefined);
    return () => {
      isGone = true;
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [file, type]);
  return url === undefined ? null : <img src={url} alt={file.name} />;
}

export function Files({
  title,
  files,
  onError,
  onRemove,
}: {
  title: string;
  files: Shown[];
  onError: (error: unknown) => void;
  /** Removes a file from the list. */
  onRemove?: (id: string) => void;
}) {
  if (files.length === 0) return null;
  const download = (file: Shown) =>
    file.download().then((bytes) => save(file.name, bytes as Uint8Array<ArrayBuffer>), onError);
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul>
        {files.map((file) => {
          const type = typeOf(file.name);
          return (
            <li key={file.id}>
              <button type="button" onClick={() => void download(file)}>
                Download <bdi>{file.name}</bdi>
              </button>
              {onRemove !== undefined && (
                <button type="button" onClick={() => onRemove(file.id)}>
                  Remove <bdi>{file.name}</bdi>
                </button>
              )}
              {type !== undefined && <Picture file={file} type={type} />}
              {isTable(file) && <Table file={file} />}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
