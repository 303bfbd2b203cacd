/**
 * Parses a settings file: `KEY=value` lines, with the quotes and backslashes of systemd's EnvironmentFile, so that one file
 * works for both. It is stricter than systemd: what systemd skips or joins is refused, with file and line. Takes time linear
 * in the size of the text. No message shows any of the text, because it may hold secrets. Pure.
 */
import { Problem } from "../problem.ts";

export interface FileSetting {
  value: string;
  /** The line of the name; the first line is 1. */
  line: number;
}

/** Returns the settings by name. Throws a Problem for the first invalid line. */
export function parseSettings(text: string, file: string): Map<string, FileSetting> {
  const reader = new Reader(text.replaceAll("\r\n", "\n"), file);
  const settings = new Map<string, FileSetting>();
  while (reader.findName()) {
    const { line } = reader;
    const name = reader.name();
    const earlier = settings.get(name)?.line;
    if (earlier !== undefined) throw reader.problem(`${name} is set in line ${earlier} already`, line);
    settings.set(name, { value: reader.value(), line });
  }
  return settings;
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Characters that a backslash escapes between double quotes. */
const ESCAPED = '"\\`$';

class Reader {
  line = 1;
  readonly #text: string;
  readonly #file: string;
  #at = 0;

  constructor(text: string, file: string) {
    this.#text = text;
    this.#file = file;
    if (text.startsWith("\uFEFF"))
      throw this.problem("the file begins with a byte order mark; save it as plain UTF-8");
    if (text.includes("\0")) throw this.problem("the file contains a NUL character");
  }

  problem(what: string, line = this.line): Problem {
    return new Problem(
      `${this.#file}:${line}: ${what}`,
      "A settings file has KEY=value lines and # comments.",
    );
  }

  /** Goes to the next line that is neither empty nor a comment. False at the end. */
  findName(): boolean {
    for (;;) {
      this.#skipBlanks();
      const next = this.#text[this.#at];
      if (next === undefined) return false;
      if (next === "#" || next === ";") this.#at = this.#endOfLine();
      else if (next !== "\n") return true;
      else this.#next();
    }
  }

  name(): string {
    const end = this.#endOfLine();
    const line = this.#text.slice(this.#at, end);
    const equals = line.indexOf("=");
    if (equals === -1) throw this.problem("KEY=value is expected");
    const name = line.slice(0, equals).trimEnd();
    if (/^export\s/.test(name)) throw this.problem("KEY=value is expected, without `export`");
    if (!NAME.test(name)) throw this.problem("the text before = is not the name of a variable");
    this.#at += equals + 1;
    return name;
  }

  value(): string {
    this.#skipBlanks();
    const quote = this.#text[this.#at];
    if (quote !== "'" && quote !== '"') return this.#plainValue();
    const value = quote === "'" ? this.#singleQuoted() : this.#doubleQuoted();
    this.#skipBlanks();
    if (this.#at < this.#text.length && this.#text[this.#at] !== "\n")
      throw this.problem("there is text after the closing quote");
    return value;
  }

  /** The value up to the end of the line, without trailing blanks unless a backslash keeps them. */
  #plainValue(): string {
    const kept: string[] = [];
    let length = 0;
    while (this.#at < this.#text.length && this.#text[this.#at] !== "\n") {
      const isEscape = this.#text[this.#at] === "\\";
      if (isEscape && this.#continues()) continue;
      const character = isEscape ? this.#escaped() : this.#next();
      kept.push(character);
      if (isEscape || !isBlank(character)) length = kept.length;
    }
    return kept.slice(0, length).join("");
  }

  #escaped(): string {
    this.#next();
    if (this.#at >= this.#text.length) throw this.problem("the file ends with a backslash");
    return this.#next();
  }

  #singleQuoted(): string {
    const first = this.line;
    const end = this.#text.indexOf("'", this.#at + 1);
    if (end === -1) throw this.problem("the quote is not closed", first);
    const value = this.#text.slice(this.#at + 1, end);
    while (this.#at <= end) this.#next();
    return value;
  }

  #doubleQuoted(): string {
    const first = this.line;
    const kept: string[] = [];
    this.#next();
    for (;;) {
      const character = this.#text[this.#at];
      if (character === undefined) throw this.problem("the quote is not closed", first);
      if (character === "\\" && this.#continues()) continue;
      if (character === "\\" && ESCAPED.includes(this.#text[this.#at + 1] ?? " ")) this.#next();
      const next = this.#next();
      if (character === '"') return kept.join("");
      kept.push(next);
    }
  }

  /** Whether the backslash at this point ends the line. If so, skips the backslash and the newline. */
  #continues(): boolean {
    if (this.#text[this.#at + 1] !== "\n") return false;
    this.#next();
    this.#next();
    return true;
  }

  #next(): string {
    const character = this.#text[this.#at++] ?? "";
    if (character === "\n") this.line++;
    return character;
  }

  #skipBlanks(): void {
    while (isBlank(this.#text[this.#at])) this.#at++;
  }

  #endOfLine(): number {
    const end = this.#text.indexOf("\n", this.#at);
    return end === -1 ? this.#text.length : end;
  }
}

function isBlank(character: string | undefined): boolean {
  return character === " " || character === "\t" || character === "\r";
}
