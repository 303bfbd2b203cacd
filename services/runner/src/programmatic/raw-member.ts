/**
 * The text of one member of a JSON object, exactly as it stands there: large numbers, order and depth survive. For texts
 * that JSON.parse accepts. Pure.
 */
export function rawMember(text: string, name: string): string | undefined {
  let at = text.indexOf("{") + 1;
  let found: string | undefined;
  for (;;) {
    at = skipSpace(text, at);
    if (at >= text.length || text[at] === "}") return found;
    const keyEnd = endOfString(text, at);
    const key = JSON.parse(text.slice(at, keyEnd)) as string;
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = endOfValue(text, start);
    // Of two members with one name the last one counts, as in JSON.parse.
    if (key === name) found = text.slice(start, end).trimEnd();
    at = text[end] === "," ? end + 1 : end;
  }
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && " \t\n\r".includes(text[at] as string)) at++;
  return at;
}

/** Behind the closing quote of the string that starts at `from`. */
function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** At the comma or brace behind the value that starts at `from`. */
function endOfValue(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at) - 1;
    else if (char === "{" || char === "[") depth++;
    else if (depth > 0 && (char === "}" || char === "]")) depth--;
    else if (depth === 0 && (char === "," || char === "}")) return at;
  }
  return text.length;
}
