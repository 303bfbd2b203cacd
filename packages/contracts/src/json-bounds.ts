/**
 * How deep and how large JSON may be that a caller or a program wrote. Judged on the bytes, before a parser builds anything
 * of them: one pass, linear, without recursion and without allocation. A text that is not JSON may pass; a parser says so.
 */

export interface JsonBounds {
  /** Containers inside each other; `[]` is 1 deep, a number 0. */
  depth: number;
  /** Values of all levels: containers, members, elements. Keys do not count. */
  values: number;
}

export const JSON_BOUNDS: Readonly<JsonBounds> = { depth: 64, values: 200_000 };

/** The bounds of a message of ours around such JSON: its own levels, and members of its own. */
export function boundsAround(levels: number): JsonBounds {
  return { depth: JSON_BOUNDS.depth + levels, values: JSON_BOUNDS.values + ENVELOPE_VALUES };
}

/** Enough for what several hundred calls or results have around them. */
const ENVELOPE_VALUES = 4096;

const OTHER = 0;
const BLANK = 1;
const QUOTE = 2;
const OPEN = 3;
const CLOSE = 4;
const COMMA = 5;

const KINDS = new Uint8Array(256);
for (const [kind, characters] of [
  [BLANK, " \t\r\n"],
  [QUOTE, '"'],
  [OPEN, "[{"],
  [CLOSE, "]}"],
  [COMMA, ","],
] as const) {
  for (const character of characters) KINDS[character.charCodeAt(0)] = kind;
}

/** Which bound a JSON text exceeds; undefined when it keeps both. */
export function exceededJsonBound(
  bytes: Uint8Array,
  { depth: maxDepth, values: maxValues }: Readonly<JsonBounds> = JSON_BOUNDS,
): keyof JsonBounds | undefined {
  let depth = 0;
  let values = 1;
  let isOpened = false;
  for (let at = 0; at < bytes.length; at++) {
    const kind = KINDS[bytes[at] as number];
    if (kind === BLANK) continue;
    // The first value of a container; those behind it have a comma each.
    if (kind === COMMA || (isOpened && kind !== CLOSE)) values++;
    if (values > maxValues) return "values";
    isOpened = kind === OPEN;
    if (kind === OTHER) continue;
    if (kind === QUOTE) at = endOfString(bytes, at + 1);
    else if (kind === CLOSE) depth--;
    else if (kind === OPEN && ++depth > maxDepth) return "depth";
  }
  return undefined;
}

const QUOTATION_MARK = 0x22;
const BACKSLASH = 0x5c;
/** A search costs more than to look at so many bytes one by one. */
const BYTES_BEFORE_SEARCH = 64;

/** Where the string ends whose first byte is at `from`: at its closing mark, or behind the last byte. */
function endOfString(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length) {
    for (const until = at + BYTES_BEFORE_SEARCH; at < until; at++) {
      if (bytes[at] === QUOTATION_MARK) return at;
      if (bytes[at] === BACKSLASH) at++;
    }
    const mark = bytes.indexOf(QUOTATION_MARK, at);
    if (mark === -1) return bytes.length;
    if (!isEscaped(bytes, at, mark)) return mark;
    at = mark + 1;
  }
  return bytes.length;
}

/** Whether the byte at `at` stands behind an odd number of backslashes; nothing before `from` escapes it. */
function isEscaped(bytes: Uint8Array, from: number, at: number): boolean {
  let first = at;
  while (first > from && bytes[first - 1] === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}
