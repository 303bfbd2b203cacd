/**
 * The texts in a TypeScript source: string and template literals, without those in comments and regular expressions. A
 * small scanner and no parser: it knows what the sources of ./svc use, and a text that it misses is one that no test holds.
 */

/** Between two pieces stands a value that is known at run time. */
export type Text = readonly string[];

/** Before a slash: it begins a regular expression there, and divides elsewhere. */
const BEFORE_REGEX = /(^|[(,=:[!&|?{};\n>]|\breturn)\s*$/;
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "0": "\0" };

export function textsIn(source: string): Text[] {
  const texts: Text[] = [];
  let at = 0;

  function skipTo(end: string): void {
    const found = source.indexOf(end, at);
    at = found === -1 ? source.length : found + end.length;
  }

  function escaped(): string {
    const character = source[at + 1] ?? "";
    const unicode = /^\\(?:u\{?([0-9a-fA-F]+)\}?|x([0-9a-fA-F]{2}))/.exec(source.slice(at, at + 10));
    at += unicode === null ? 2 : unicode[0].length;
    if (unicode !== null) return String.fromCodePoint(Number.parseInt(unicode[1] ?? unicode[2] ?? "0", 16));
    return ESCAPES[character] ?? character;
  }

  function quoted(quote: string): void {
    let text = "";
    for (at++; at < source.length && source[at] !== quote; )
      text += source[at] === "\\" ? escaped() : source[at++];
    at++;
    texts.push([text]);
  }

  function template(): void {
    const pieces: string[] = [];
    let piece = "";
    for (at++; at < source.length && source[at] !== "`"; ) {
      if (source.startsWith("${", at)) {
        at += 2;
        code("}");
        pieces.push(piece);
        piece = "";
      } else piece += source[at] === "\\" ? escaped() : source[at++];
    }
    at++;
    texts.push([...pieces, piece]);
  }

  function regex(): void {
    for (let inClass = false; ++at < source.length; ) {
      if (source[at] === "\\") at++;
      else if (source[at] === "[") inClass = true;
      else if (source[at] === "]") inClass = false;
      else if (source[at] === "/" && !inClass) break;
    }
    at++;
  }

  /** To the brace that closes, or to the end. */
  function code(end?: "}"): void {
    for (let depth = 0; at < source.length; ) {
      const character = source[at] ?? "";
      if (source.startsWith("//", at)) skipTo("\n");
      else if (source.startsWith("/*", at)) skipTo("*/");
      else if (character === '"' || character === "'") quoted(character);
      else if (character === "`") template();
      else if (character === "/" && BEFORE_REGEX.test(source.slice(Math.max(0, at - 20), at))) regex();
      else {
        at++;
        if (character === "{") depth++;
        else if (character === "}" && depth-- === 0 && end !== undefined) return;
      }
    }
  }

  code();
  return texts;
}
