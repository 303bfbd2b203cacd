/**
 * Ids of sessions, storage sessions, files and executions: 21 characters of `[A-Za-z0-9_-]`, 126 random bits.
 * Clients pass them through routes that accept exactly this form, never a UUID.
 */
import { randomFillSync } from "node:crypto";
import { z } from "zod";

export const ID_LENGTH = 21;
export const ID_PATTERN = /^[A-Za-z0-9_-]{21}$/;
export const idSchema = z
  .string()
  .regex(ID_PATTERN, "must be an id as the service gives them: 21 of A-Z a-z 0-9 _ -");

const ID_BYTES = 16;
/** Random bytes for future ids: one system call per id would cost more than making the id. */
const pool = Buffer.alloc(256 * ID_BYTES);
let used = pool.length;
/** A machine restored from a snapshot would use the same bytes again. The jump of its clock shows the restore, so old bytes are dropped. */
const MAX_AGE_MS = 60_000;
let madeAtMs = 0;

/** A fresh random id: the first 21 characters of 16 random bytes in base64url. */
export function newId(): string {
  const nowMs = Date.now();
  if (used === pool.length || Math.abs(nowMs - madeAtMs) > MAX_AGE_MS) {
    randomFillSync(pool);
    used = 0;
    madeAtMs = nowMs;
  }
  const bytes = pool.subarray(used, used + ID_BYTES);
  used += ID_BYTES;
  const id = bytes.toString("base64url").slice(0, ID_LENGTH);
  bytes.fill(0);
  return id;
}

export function isId(text: unknown): text is string {
  return typeof text === "string" && ID_PATTERN.test(text);
}
