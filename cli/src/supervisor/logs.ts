/**
 * Log files of the components. Each process appends directly to its own file, so a log line costs the supervisor nothing.
 * rotation.ts limits their size.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";

export function logPath(logsDir: string, name: string): string {
  return join(logsDir, `${name}.log`);
}

/** Size of a file in bytes; 0 when there is none. */
export function fileSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Text of a file from an offset to the end. A negative offset counts from the end. Empty when there is no such file. */
export function readFrom(path: string, offset: number): string {
  return bytesFrom(path, offset).toString("utf8");
}

/** Like `readFrom`. A piece that may begin or end within a character must not be decoded before it is cut. */
export function bytesFrom(path: string, offset: number): Buffer {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return Buffer.alloc(0);
  }
  try {
    const { size } = fstatSync(fd);
    const start = offset < 0 ? Math.max(0, size + offset) : offset;
    const buffer = Buffer.alloc(Math.max(0, size - start));
    return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, start));
  } finally {
    closeSync(fd);
  }
}

export interface LogLine {
  level: number;
  /** The message without the time and the other fields. */
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

/** Parses one line: JSON from the components, or plain text (level 0), such as Redis writes. */
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
