/**
 * How deep and how large JSON may be that a caller or a program wrote. Judged on the bytes, before a parser builds anything
 * of them: one pass, linear, without recursion. A text that is not JSON may pass; a parser says so.
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
  bounds: Readonly<JsonBounds> = JSON_BOUNDS,
): keyof JsonBounds | undefined {
  return new JsonScanner(bounds).push(bytes);
}

const QUOTATION_MARK = 0x22;
const BACKSLASH = 0x5c;
/** A search costs more than to look at so many bytes one by one. */
const BYTES_BEFORE_SEARCH = 64;

/** The same for a text that comes in pieces. */
export class JsonScanner {
  readonly #bounds: Readonly<JsonBounds>;
  #depth = 0;
  /** The outermost value is one. */
  #values = 1;
  #isInString = false;
  /** The piece before ended in a backslash that escapes the first byte of this one. */
  #isEscaped = false;
  /** Nothing but blanks has come since a container began. */
  #isOpened = false;

  constructor(bounds: Readonly<JsonBounds>) {
    this.#bounds = bounds;
  }

  /** Which bound is exceeded by what has come so far; nothing may be pushed after that. */
  push(bytes: Uint8Array): keyof JsonBounds | undefined {
    let at = this.#isInString ? this.#endOfString(bytes, 0) + 1 : 0;
    for (; at < bytes.length; at++) {
      const kind = KINDS[bytes[at] as number];
      if (kind === BLANK || (kind === OTHER && !this.#isOpened)) continue;
      // The first value of a container; those behind it have a comma each.
      if (kind === COMMA || (this.#isOpened && kind !== CLOSE)) this.#values++;
      if (this.#values > this.#bounds.values) return "values";
      this.#isOpened = kind === OPEN;
      if (kind === QUOTE) at = this.#endOfString(bytes, at + 1);
      else if (kind === CLOSE) this.#depth--;
      else if (kind === OPEN && ++this.#depth > this.#bounds.depth) return "depth";
    }
    return undefined;
  }

  /** The place of the mark that ends the string in which `from` lies, or after the last byte when it goes on. */
  #endOfString(bytes: Uint8Array, from: number): number {
    let at = this.#isEscaped ? from + 1 : from;
    this.#isEscaped = false;
    this.#isInString = false;
    while (at < bytes.length) {
      for (const until = Math.min(at + BYTES_BEFORE_SEARCH, bytes.length); at < until; at++) {
        if (bytes[at] === QUOTATION_MARK) return at;
        if (bytes[at] === BACKSLASH) at++;
      }
      if (at >= bytes.length) break;
      const mark = bytes.indexOf(QUOTATION_MARK, at);
      const end = mark === -1 ? bytes.length : mark;
      const isEscaped = endsInEscape(bytes, at, end);
      if (mark !== -1 && !isEscaped) return mark;
      at = isEscaped ? end + 1 : end;
    }
    this.#isInString = true;
    this.#isEscaped = at > bytes.length;
    return bytes.length;
  }
}

/** Whether the byte at `at` stands behind an odd number of backslashes; nothing before `from` escapes it. */
function endsInEscape(bytes: Uint8Array, from: number, at: number): boolean {
  let first = at;
  while (first > from && bytes[first - 1] === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}
