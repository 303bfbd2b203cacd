/**
 * Parses the Range header. One byte range is served; several ranges get the whole content; an invalid header is ignored. Pure; the header is the
 * caller's text. The package range-parser is not used: it refuses a suffix longer than the content, for which RFC 9110 gives the whole content.
 */
import type { ByteRange } from "@svc/object-store";

export type RangeAnswer = ByteRange | "everything" | "unsatisfiable";

const BYTES = /^bytes=(.*)$/i;
const SPEC = /^[ \t]*(\d*)-(\d*)[ \t]*$/;

export function parseRange(header: string | undefined, size: number): RangeAnswer {
  const spec = SPEC.exec(BYTES.exec(header ?? "")?.[1] ?? "");
  if (spec === null) return "everything";
  const [, first = "", last = ""] = spec;
  if (first === "" && last === "") return "everything";
  if (first === "") return suffix(Number(last), size);
  if (last !== "" && Number(last) < Number(first)) return "everything";
  if (Number(first) >= size) return "unsatisfiable";
  return { first: Number(first), last: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}

function suffix(length: number, size: number): RangeAnswer {
  if (length === 0 || size === 0) return "unsatisfiable";
  return { first: Math.max(0, size - length), last: size - 1 };
}
