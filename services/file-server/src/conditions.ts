/**
 * Evaluates the conditional and range headers of a GET or HEAD of an object. Pure. Entity tags are strong and times have whole seconds.
 * If-None-Match takes precedence over If-Modified-Since; If-Range decides whether Range applies.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { ObjectRecord } from "@svc/contracts";
import type { ByteRange } from "@svc/object-store";
import { parseRange } from "./ranges.ts";

export type Answer = { status: 200 | 304 | 416 } | { status: 206; range: ByteRange };
type Validators = Pick<ObjectRecord, "etag" | "lastModified" | "size">;

export function answerFor(method: string, headers: IncomingHttpHeaders, record: Validators): Answer {
  if (isUnchanged(headers, record)) return { status: 304 };
  if (method !== "GET" || !rangeCounts(headers["if-range"], record)) return { status: 200 };
  const range = parseRange(headers.range, record.size);
  if (range === "everything") return { status: 200 };
  if (range === "unsatisfiable") return { status: 416 };
  return { status: 206, range };
}

export function quoted(etag: string): string {
  return `"${etag}"`;
}

function isUnchanged(headers: IncomingHttpHeaders, record: Validators): boolean {
  const noneMatch = headers["if-none-match"];
  if (noneMatch !== undefined) {
    if (noneMatch.trim() === "*") return true;
    // Every other piece is a tag, unless its closing quote is missing.
    const pieces = noneMatch.split('"');
    return pieces.some((piece, at) => at % 2 === 1 && at + 1 < pieces.length && piece === record.etag);
  }
  const since = seconds(headers["if-modified-since"]);
  return since !== undefined && modifiedSeconds(record) <= since;
}

function rangeCounts(ifRange: string | string[] | undefined, record: Validators): boolean {
  if (ifRange === undefined) return true;
  const text = String(ifRange).trim();
  if (text.includes('"')) return text === quoted(record.etag);
  return seconds(text) === modifiedSeconds(record);
}

function modifiedSeconds(record: Validators): number {
  return Math.floor(Date.parse(record.lastModified) / 1000);
}

function seconds(date: string | undefined): number | undefined {
  const time = Date.parse(date ?? "");
  return Number.isNaN(time) ? undefined : Math.floor(time / 1000);
}
