/**
 * One text for one JSON value: keys sorted by their UTF-16 code units at all levels, no spaces, strings and numbers as
 * JSON.stringify writes them, undefined fields left out. What JSON cannot say without loss, and nesting deeper than any
 * message of ours, is refused: two different values never share a text. Pure.
 */
import { createHash } from "node:crypto";

const MAX_DEPTH = 32;

/** The value has no canonical text. */
export class NotCanonical extends Error {
  constructor() {
    super("the value has no canonical JSON text");
    this.name = "NotCanonical";
  }
}

export function canonicalJson(value: unknown, depth = 0): string {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return JSON.stringify(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value !== "object" || depth >= MAX_DEPTH) throw new NotCanonical();
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item, depth + 1)).join(",")}]`;
  const fields: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const field = (value as Record<string, unknown>)[key];
    if (field !== undefined) fields.push(`${JSON.stringify(key)}:${canonicalJson(field, depth + 1)}`);
  }
  return `{${fields.join(",")}}`;
}

/** SHA-256 of the text's UTF-8 bytes, base64url without padding. */
export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
