/**
 * The headers of one part of a multipart/form-data body, and the boundary in the request's own header. Texts are UTF-8.
 * Pure; everything here is the client's text: what is not understood is `invalid_multipart`, never guessed.
 */
import { ServiceError } from "@svc/contracts";

export interface PartHeaders {
  /** Name of the form field. */
  name: string | undefined;
  /** Present, maybe empty, for file parts only. */
  filename: string | undefined;
  contentType: string | undefined;
}

const MAX_BOUNDARY = 200;
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const PARAMETER = new RegExp(
  `[ \\t]*;[ \\t]*(${TOKEN})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|([^;"]*))`,
  "y",
);
const HEADER_LINE = new RegExp(`^(${TOKEN}):[ \\t]*(.*?)[ \\t]*$`, "s");
const UNENCODED = /^(7bit|8bit|binary)$/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const LINE_NOISE = /[\r\n\u0000]/;

export function invalidMultipart(message: string): ServiceError {
  return new ServiceError("invalid_multipart", `The multipart form is broken: ${message}.`);
}

export function boundaryOf(contentType: string | undefined): string {
  const type = contentType?.split(";", 1)[0] ?? "";
  if (type.trim().toLowerCase() !== "multipart/form-data") {
    throw new ServiceError("invalid_content_type", "The body must be multipart/form-data.");
  }
  const boundary = parameters((contentType ?? "").slice(type.length)).get("boundary") ?? "";
  if (boundary === "" || boundary.length > MAX_BOUNDARY) throw invalidMultipart("no usable boundary");
  return boundary;
}

/** Parses a header block without its final empty line. */
export function parsePartHeaders(block: Buffer): PartHeaders {
  const headers = new Map<string, string>();
  for (const line of block
    .toString("utf8")
    .replace(/\r\n[ \t]+/g, " ")
    .split("\r\n")) {
    const [, name = "", value = ""] = HEADER_LINE.exec(line) ?? [];
    if (name === "" || LINE_NOISE.test(value)) throw invalidMultipart("a part has a malformed header");
    if (headers.has(name.toLowerCase())) throw invalidMultipart("a part repeats a header");
    headers.set(name.toLowerCase(), value);
  }
  if (!UNENCODED.test(headers.get("content-transfer-encoding") ?? "binary")) {
    throw invalidMultipart("a part has a transfer encoding");
  }
  const disposition = headers.get("content-disposition") ?? "";
  const type = disposition.split(";", 1)[0] ?? "";
  if (type.trim().toLowerCase() !== "form-data") throw invalidMultipart("a part is no form data");
  const values = parameters(disposition.slice(type.length));
  const extended = values.get("filename*");
  const plain = values.get("filename");
  return {
    name: unescapeName(values.get("name")),
    filename: extended === undefined ? unescapeName(plain) : decodeExtended(extended),
    contentType: headers.get("content-type"),
  };
}

function parameters(text: string): Map<string, string> {
  const values = new Map<string, string>();
  let position = 0;
  while (text.slice(position).trim() !== "") {
    PARAMETER.lastIndex = position;
    const match = PARAMETER.exec(text);
    if (match === null) throw invalidMultipart("a parameter cannot be read");
    const name = (match[1] ?? "").toLowerCase();
    if (values.has(name)) throw invalidMultipart("a parameter is repeated");
    values.set(name, match[2]?.replace(/\\(["\\])/g, "$1") ?? (match[3] ?? "").trim());
    position = PARAMETER.lastIndex;
  }
  return values;
}

/** Browsers send quotes and line breaks in names as these three escapes, and no others. */
function unescapeName(name: string | undefined): string | undefined {
  return name?.replace(/%22|%0d|%0a/gi, (sequence) => decodeURIComponent(sequence));
}

/** The form `UTF-8''percent-encoded`. What cannot be decoded becomes a name that no rule accepts. */
function decodeExtended(text: string): string {
  const [, encoded] = /^utf-8'[^']*'(.*)$/is.exec(text) ?? [];
  try {
    return decodeURIComponent(encoded ?? "%");
  } catch {
    return "\ufffd";
  }
}
