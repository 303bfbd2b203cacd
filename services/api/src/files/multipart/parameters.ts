/**
 * Parses the parameters of a header field, `; name=value; name="quoted value"`, and the blanks around them. Every character is
 * read once, so the time is linear for any text. Pure; the input is untrusted.
 */
import { invalidMultipart } from "./invalid.ts";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Removes spaces and tabs at both ends. Other white space counts as text. */
export function trimBlanks(text: string): string {
  const start = skipBlanks(text, 0);
  let end = text.length;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** Parses all of `text`, which begins with the first semicolon. Names become lower case; a repeated name is an error. */
export function parseParameters(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (let at = skipBlanks(text, 0); at < text.length; ) {
    const equals = text.indexOf("=", at);
    if (text[at] !== ";" || equals === -1) throw unreadable();
    const name = trimBlanks(text.slice(at + 1, equals)).toLowerCase();
    if (!isToken(name)) throw unreadable();
    if (values.has(name)) throw invalidMultipart("a parameter is repeated");
    const start = skipBlanks(text, equals + 1);
    const isQuoted = text[start] === '"';
    const end = isQuoted ? endOfQuoted(text, start) : endOfPlain(text, start);
    values.set(
      name,
      isQuoted ? unquoted(text.slice(start + 1, end - 1)) : trimBlanks(text.slice(start, end)),
    );
    at = skipBlanks(text, end);
  }
  return values;
}

/** The index after the closing quote. */
function endOfQuoted(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  if (at >= text.length) throw unreadable();
  return at + 1;
}

function endOfPlain(text: string, start: number): number {
  let at = start;
  while (at < text.length && text[at] !== ";" && text[at] !== '"') at++;
  return at;
}

function unquoted(text: string): string {
  return text.replace(/\\(["\\])/g, "$1");
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (at < text.length && isBlank(text.charCodeAt(at))) at++;
  return at;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function unreadable(): Error {
  return invalidMultipart("a parameter cannot be read");
}
