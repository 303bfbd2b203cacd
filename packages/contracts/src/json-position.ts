/**
 * Finds where a text stops being valid JSON, for error messages. Only for texts that JSON.parse has refused.
 * One linear pass without recursion. Pure.
 */

const BLANKS = /[ \t\r\n]*/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: strings must not hold control characters
const STRING_PART = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /true|false|null/y;

/** The index of the first character that is not allowed; the length of the text when the text ends too early. */
export function jsonErrorIndex(text: string): number {
  return new Scanner(text).scan();
}

class Scanner {
  readonly #text: string;
  readonly #open: ("{" | "[")[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  scan(): number {
    for (let isFine = this.#value(); isFine; ) {
      this.#blanks();
      const container = this.#open.at(-1);
      if (container === undefined) return this.#at;
      if (this.#take(container === "{" ? "}" : "]")) {
        this.#open.pop();
        continue;
      }
      isFine = this.#take(",") && (container === "[" || this.#key()) && this.#value();
    }
    return this.#at;
  }

  /** Reads a scalar, an opening container with everything up to its first scalar, or the opening of an empty container. */
  #value(): boolean {
    for (;;) {
      this.#blanks();
      if (this.#take("[")) {
        this.#open.push("[");
        this.#blanks();
        if (this.#text[this.#at] === "]") return true;
      } else if (this.#take("{")) {
        this.#open.push("{");
        this.#blanks();
        if (this.#text[this.#at] === "}") return true;
        if (!this.#key()) return false;
      } else {
        return this.#text[this.#at] === '"' ? this.#string() : this.#match(NUMBER) || this.#match(WORD);
      }
    }
  }

  #key(): boolean {
    this.#blanks();
    if (!this.#string()) return false;
    this.#blanks();
    return this.#take(":");
  }

  #string(): boolean {
    if (!this.#take('"')) return false;
    do this.#match(STRING_PART);
    while (this.#match(ESCAPE));
    return this.#take('"');
  }

  #blanks(): void {
    this.#match(BLANKS);
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found !== "";
  }
}
