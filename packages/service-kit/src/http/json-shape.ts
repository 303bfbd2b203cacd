/**
 * Bounds the depth and the number of values of a JSON text before anything parses it: what parses, validates and copies
 * JSON afterwards costs more for each value than for each byte, and may recurse. Reads every byte once, as it comes. Takes
 * the text for JSON; whether it is, the parser says. Pure.
 */
import { ServiceError } from "@svc/contracts";

export interface JsonLimits {
  /** Levels of arrays and objects, the outermost included. */
  maxDepth: number;
  /** Texts, numbers, words, arrays and objects; keys do not count. */
  maxValues: number;
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OTHER, BLANK, OPEN, CLOSE, SEPARATOR, TEXT] = [0, 1, 2, 3, 4, 5];
/** What a byte outside texts is. */
const KINDS = new Uint8Array(256);
for (const [bytes, kind] of [
  ["\t\n\r ", BLANK],
  ["[{", OPEN],
  ["]}", CLOSE],
  [",", SEPARATOR],
  ['"', TEXT],
] as const) {
  for (const byte of Buffer.from(bytes)) KINDS[byte] = kind;
}

export class JsonShape {
  readonly #limits: JsonLimits;
  #depth = 0;
  /** The outermost value is one. */
  #values = 1;
  #inText = false;
  #isEscaped = false;
  /** Nothing but blanks has come since an array or object began. */
  #isEmpty = false;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
  }

  /** Throws `invalid_json` as soon as a limit is passed. */
  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      at = this.#inText ? this.#skipText(chunk, at) : this.#readOutside(chunk, at);
    }
  }

  /** The place behind the text, or the end of the chunk. */
  #skipText(chunk: Buffer, from: number): number {
    let at = from;
    if (this.#isEscaped) {
      this.#isEscaped = false;
      at++;
    }
    for (; at < chunk.length; at++) {
      const byte = chunk[at];
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) {
        this.#inText = false;
        return at + 1;
      }
    }
    this.#isEscaped = at > chunk.length;
    return chunk.length;
  }

  /** The place behind the quote that begins a text, or the end of the chunk. */
  #readOutside(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const kind = KINDS[chunk[at] as number];
      if (kind === BLANK || (kind === OTHER && !this.#isEmpty)) continue;
      if (kind === CLOSE) {
        this.#depth--;
        this.#isEmpty = false;
        continue;
      }
      if (this.#isEmpty || kind === SEPARATOR) this.#addValue();
      this.#isEmpty = kind === OPEN;
      if (kind === OPEN) this.#goDeeper();
      else if (kind === TEXT) {
        this.#inText = true;
        return at + 1;
      }
    }
    return chunk.length;
  }

  #goDeeper(): void {
    if (++this.#depth > this.#limits.maxDepth) {
      throw refused(`is nested deeper than ${this.#limits.maxDepth} levels`);
    }
  }

  #addValue(): void {
    if (++this.#values > this.#limits.maxValues) {
      throw refused(`holds more than ${this.#limits.maxValues.toLocaleString("en")} values`);
    }
  }
}

function refused(problem: string): ServiceError {
  return new ServiceError("invalid_json", `The request body ${problem}.`);
}
