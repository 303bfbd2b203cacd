/** Reads the logs of several components as one, ordered by time. Only a piece of each file is in memory at a time. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { bytesFrom, fileSize, logPath } from "../supervisor/logs.ts";
import { rotatedPath } from "../supervisor/rotation.ts";
import { type LogRecord, recordOf } from "./record.ts";

const PIECE_BYTES = 256 * 1024;
/** How much of the end of a file is read for its last lines. */
const TAIL_BYTES = 64 * 1024;
/** A longer line is cut in pieces. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
const NEWLINE = 10;

/** The files of a log, the oldest first. */
export function filesOf(path: string): string[] {
  const rotated: string[] = [];
  for (let n = 1; fileSize(rotatedPath(path, n)) > 0; n++) rotated.unshift(rotatedPath(path, n));
  return [...rotated, path];
}

export type WantsLine = (line: string) => boolean;

export interface Source {
  component: string;
  /** How many bytes of the newest file are read; by default all. */
  limit?: number;
}

/** All records of the components, oldest first. `wants` selects lines before they are parsed. */
export function* mergedRecords(
  logsDir: string,
  sources: readonly Source[],
  wants?: WantsLine,
): Generator<LogRecord> {
  yield* mergeByTime(sources.map((source) => recordsOf(source, logPath(logsDir, source.component), wants)));
}

/** The last records of all components together, as far as they are near the ends of the newest files. */
export function lastRecords(logsDir: string, sources: readonly Source[], count: number): LogRecord[] {
  const ends = sources.map(({ component, limit }) => {
    const path = logPath(logsDir, component);
    const end = Math.min(limit ?? Number.POSITIVE_INFINITY, fileSize(path));
    const start = Math.max(0, end - TAIL_BYTES);
    const text = bytesFrom(path, start).toString("utf8", 0, end - start);
    const lines = text.split("\n").slice(start > 0 ? 1 : 0);
    let time = 0;
    return lines.filter(Boolean).map((line) => {
      const record = recordOf(component, line, time);
      time = record.time;
      return record;
    });
  });
  return [...mergeByTime(ends.map((records) => records.values()))].slice(-count);
}

/** Merges sources that are ordered already. Records with the same time keep the order of the sources. */
export function* mergeByTime(sources: readonly Iterator<LogRecord, void>[]): Generator<LogRecord> {
  const heads = sources.flatMap((source) => headOf(source));
  while (heads.length > 0) {
    let least = heads[0] as Head;
    for (const head of heads) if (head.record.time < least.record.time) least = head;
    yield least.record;
    const [next] = headOf(least.source);
    if (next === undefined) heads.splice(heads.indexOf(least), 1);
    else least.record = next.record;
  }
}

interface Head {
  source: Iterator<LogRecord, void>;
  record: LogRecord;
}

function headOf(source: Iterator<LogRecord, void>): [Head] | [] {
  const { value } = source.next();
  return value === undefined ? [] : [{ source, record: value }];
}

function* recordsOf(
  { component, limit }: Source,
  path: string,
  wants?: WantsLine,
): Generator<LogRecord, void> {
  let time = 0;
  for (const line of linesOf(path, limit)) {
    if (wants?.(line) === false) continue;
    const record = recordOf(component, line, time);
    time = record.time;
    yield record;
  }
}

/** Opens all files first, so that a rotation in the meantime removes none of them. */
function* linesOf(path: string, limit?: number): Generator<string> {
  const opened = filesOf(path).flatMap((file) =>
    openFile(file).map((descriptor) => ({ descriptor, limit: file === path ? limit : undefined })),
  );
  try {
    for (const file of opened) yield* linesIn(file.descriptor, file.limit);
  } finally {
    for (const { descriptor } of opened) closeSync(descriptor);
  }
}

function openFile(path: string): number[] {
  try {
    return [openSync(path, "r")];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** The lines that a file had when it was opened. */
function* linesIn(descriptor: number, limit = Number.POSITIVE_INFINITY): Generator<string> {
  const size = Math.min(fstatSync(descriptor).size, limit);
  let rest = Buffer.alloc(0);
  for (let at = 0; at < size; ) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size - at));
    const count = readSync(descriptor, piece, 0, piece.length, at);
    if (count === 0) break;
    at += count;
    const bytes = Buffer.concat([rest, piece.subarray(0, count)]);
    const end = bytes.length > MAX_LINE_BYTES ? bytes.length : bytes.lastIndexOf(NEWLINE) + 1;
    for (const line of bytes.toString("utf8", 0, end).split("\n")) if (line !== "") yield line;
    rest = bytes.subarray(end);
  }
  if (rest.length > 0) yield rest.toString("utf8");
}
