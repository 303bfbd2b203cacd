/**
 * Parses the headers of one part of a multipart/form-data body, and the boundary in the request's Content-Type. Texts are UTF-8.
 * Pure; the input is untrusted. Text that cannot be parsed is `invalid_multipart`, never guessed.
 */
import { wrongContentType } from "@svc/service-kit";
import { invalidMultipart } from "./invalid.ts";
import { isToken, parseParameters, trimBlanks } from "./parameters.ts";

export interface PartHeaders {
  /** Name of the form field. */
  name: string | undefined;
  /** Present only for file parts, where it may be empty. */
  filename: string | undefined;
  contentType: string | undefined;
}

const MAX_BOUNDARY = 200;
/** Clients usually send three headers. */
const MAX_LINES = 8;
const UNENCODED = /^(7bit|8bit|binary)$/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const LINE_NOISE = /[\r\n\u0000]/;

export function boundaryOf(contentType: string | undefined): string {
  const [type, parameters] = cutAt(contentType ?? "", ";");
  if (trimBlanks(type).toLowerCase() !== "multipart/form-data") {
    throw wrongContentType("multipart/form-data", contentType);
  }
  const boundary = parseParameters(parameters).get("boundary") ?? "";
  if (boundary === "" || boundary.length > MAX_BOUNDARY) throw invalidMultipart("no usable boundary");
  return boundary;
}

/** Parses a header block without its final empty line. */
export function parsePartHeaders(block: Buffer): PartHeaders {
  const headers = new Map<string, string>();
  const lines = block
    .toString("utf8")
    .replace(/\r\n[ \t]+/g, " ")
    .split("\r\n", MAX_LINES + 1);
  if (lines.length > MAX_LINES) throw invalidMultipart("a part has too many headers");
  for (const line of lines) {
    const [name, rest] = cutAt(line, ":");
    if (!isToken(name) || rest === "" || LINE_NOISE.test(rest)) {
      throw invalidMultipart("a part has a malformed header");
    }
    if (headers.has(name.toLowerCase())) throw invalidMultipart("a part repeats a header");
    headers.set(name.toLowerCase(), trimBlanks(rest.slice(1)));
  }
  if (!UNENCODED.test(headers.get("content-transfer-encoding") ?? "binary")) {
    throw invalidMultipart("a part has a transfer encoding");
  }
  const [type, parameters] = cutAt(headers.get("content-disposition") ?? "", ";");
  if (trimBlanks(type).toLowerCase() !== "form-data") throw invalidMultipart("a part is no form data");
  const values = parseParameters(parameters);
  const extended = values.get("filename*");
  const plain = values.get("filename");
  return {
    name: unescapeName(values.get("name")),
    filename: extended === undefined ? unescapeName(plain) : decodeExtended(extended),
    contentType: headers.get("content-type"),
  };
}

/** The text before the first mark, and the rest from the mark on. The rest is empty without a mark. */
function cutAt(text: string, mark: string): [before: string, rest: string] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at)];
}

/** Browsers escape quotes and line breaks in names with these three sequences, and nothing else. */
function unescapeName(name: string | undefined): string | undefined {
  return name?.replace(/%22|%0d|%0a/gi, (sequence) => decodeURIComponent(sequence));
}

/** Decodes `UTF-8''percent-encoded`. A text that cannot be decoded becomes a name that no rule accepts. */
function decodeExtended(text: string): string {
  const [, encoded] = /^utf-8'[^']*'(.*)$/is.exec(text) ?? [];
  try {
    return decodeURIComponent(encoded ?? "%");
  } catch {
    return "\ufffd";
  }
}
