/**
 * Bounds on the depth and size of JSON from a caller or a program. They are checked on the bytes, before a parser builds
 * any value: one linear pass without recursion. Text that is not JSON may pass, so the parser must still reject it.
 */

export interface JsonBounds {
  /** Nesting of containers: `[]` has depth 1, a number 0. */
  depth: number;
  /** Number of values at all levels: containers, members and elements. Keys do not count. */
  values: number;
}

export const JSON_BOUNDS: Readonly<JsonBounds> = { depth: 64, values: 200_000 };

/** Bounds of an internal message that wraps such JSON: adds the message's own levels and values. */
export function boundsAround(levels: number): JsonBounds {
  return { depth: JSON_BOUNDS.depth + levels, values: JSON_BOUNDS.values + ENVELOPE_VALUES };
}

/** Enough for the wrappers of several hundred calls or results. */
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
/** Checking this many bytes one by one costs less than one `indexOf` call. */
const BYTES_BEFORE_SEARCH = 64;

/** Checks a text that arrives in pieces. */
export class JsonScanner {
  readonly #bounds: Readonly<JsonBounds>;
  #depth = 0;
  /** Starts at 1: the outermost value counts. */
  #values = 1;
  #isInString = false;
  /** The previous piece ended in a backslash that escapes the first byte of this piece. */
  #isEscaped = false;
  /** Only whitespace has come since the last container opened. */
  #isOpened = false;

  constructor(bounds: Readonly<JsonBounds>) {
    this.#bounds = bounds;
  }

  /** The bound that the text exceeds so far, or undefined. After an exceeded bound the caller must push nothing more. */
  push(bytes: Uint8Array): keyof JsonBounds | undefined {
    let at = this.#isInString ? this.#endOfString(bytes, 0) + 1 : 0;
    for (; at < bytes.length; at++) {
      const kind = KINDS[bytes[at] as number];
      if (kind === BLANK || (kind === OTHER && !this.#isOpened)) continue;
      // Counts the first value of a container here, and each later value by its comma.
      if (kind === COMMA || (this.#isOpened && kind !== CLOSE)) this.#values++;
      if (this.#values > this.#bounds.values) return "values";
      this.#isOpened = kind === OPEN;
      if (kind === QUOTE) at = this.#endOfString(bytes, at + 1);
      else if (kind === CLOSE) this.#depth--;
      else if (kind === OPEN && ++this.#depth > this.#bounds.depth) return "depth";
    }
    return undefined;
  }

  /** The index of the quotation mark that ends the string around `from`; `bytes.length` when the string continues in the next piece. */
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

/** Whether an odd number of backslashes precedes the byte at `at`. Bytes before `from` do not count. */
function endsInEscape(bytes: Uint8Array, from: number, at: number): boolean {
  let first = at;
  while (first > from && bytes[first - 1] === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}
