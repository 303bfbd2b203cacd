/**
 * Log files of the components. Each process appends to its own file directly, so the supervisor costs nothing per line.
 * rotation.ts keeps them short.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";

export function logPath(logsDir: string, name: string): string {
  return join(logsDir, `${name}.log`);
}

/** Bytes in a file; 0 when there is none. */
export function fileSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Text of a file from an offset on; a negative offset counts from the end. Empty when there is no such file. */
export function readFrom(path: string, offset: number): string {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return "";
  }
  try {
    const { size } = fstatSync(fd);
    const start = offset < 0 ? Math.max(0, size + offset) : offset;
    const buffer = Buffer.alloc(Math.max(0, size - start));
    return buffer.toString("utf8", 0, readSync(fd, buffer, 0, buffer.length, start));
  } finally {
    closeSync(fd);
  }
}

export interface LogLine {
  level: number;
  /** The message without time and details. */
  message: string;
  text: string;
}

const LEVELS: Record<number, string> = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};

/** Reads one line: JSON as the components write it, or plain text (level 0) as Redis does. */
export function readLine(line: string): LogLine {
  const plain: LogLine = { level: 0, message: line, text: line };
  try {
    const {
      level,
      time,
      msg,
      name: _name,
      instance: _instance,
      ...rest
    } = JSON.parse(line) as Record<string, unknown>;
    if (typeof level !== "number") return plain;
    const clock =
      typeof time === "string" || typeof time === "number" ? new Date(time).toISOString().slice(11, 23) : "";
    const details = Object.keys(rest).length > 0 ? ` ${JSON.stringify(rest)}` : "";
    return {
      level,
      message: String(msg ?? ""),
      text: `${clock} ${LEVELS[level] ?? level} ${msg ?? ""}${details}`,
    };
  } catch {
    return plain;
  }
}
