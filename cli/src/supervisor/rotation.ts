/**
 * Rotation of log files: NAME.log becomes NAME.log.1, which becomes .2, and so on. The files beyond the last are removed.
 *
 * The file is copied and then truncated. Processes keep the descriptors that they were started with, and cannot open a new
 * file, because the folder is closed to their users. Writers are stopped between the end of the copy and the truncation, so
 * no line is lost. That takes a few milliseconds in about 100,000 requests. Pipes through the supervisor would lose no line
 * either, but would wake it for every line: they would cost each request more than the rotation costs all of them.
 */
import { closeSync, ftruncateSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import { type Environment, settingOf } from "../settings.ts";
import { whileWritersAreStopped } from "../system/writers.ts";
import { fileSize } from "./logs.ts";

export interface RotationRules {
  /** Size in bytes above which a file is rotated; 0: never. */
  bytes: number;
  /** How many rotated files are kept. */
  keep: number;
}

const CHUNK_BYTES = 1024 * 1024;

export function rotationRules(caller: Environment): RotationRules {
  return { bytes: settingOf("LOG_ROTATE_BYTES", caller), keep: settingOf("LOG_ROTATE_KEEP", caller) };
}

/** Returns whether the file was rotated. When a writer cannot be stopped, it is not; the next attempt may succeed. */
export function rotateLog(path: string, { bytes, keep }: RotationRules): boolean {
  if (bytes === 0 || fileSize(path) <= bytes) return false;
  const copy = `${path}.new`;
  const from = openSync(path, "r+");
  const to = openSync(copy, "w", 0o600);
  try {
    const copied = append(from, to, 0);
    return whileWritersAreStopped(from, () => {
      append(from, to, copied);
      shift(path, keep);
      ftruncateSync(from, 0);
      renameSync(copy, rotatedPath(path, 1));
    });
  } finally {
    closeSync(from);
    closeSync(to);
    rmSync(copy, { force: true });
  }
}

/** The path of the nth newest rotated file. */
export function rotatedPath(path: string, n: number): string {
  return `${path}.${n}`;
}

function shift(path: string, keep: number): void {
  for (let n = keep; fileSize(rotatedPath(path, n)) > 0; n++) rmSync(rotatedPath(path, n));
  for (let n = keep - 1; n >= 1; n--) {
    const older = rotatedPath(path, n);
    if (fileSize(older) > 0) renameSync(older, rotatedPath(path, n + 1));
  }
}

/** Copies a file from an offset to its end. Returns the offset of the end. */
function append(from: number, to: number, offset: number): number {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = offset; ; ) {
    const count = readSync(from, buffer, 0, buffer.length, at);
    if (count === 0) return at;
    for (let written = 0; written < count; ) written += writeSync(to, buffer, written, count - written);
    at += count;
  }
}
