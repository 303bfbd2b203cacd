/**
 * Ids of sessions, storage sessions, files and executions: 21 characters of `[A-Za-z0-9_-]`, 126 random bits.
 * Clients pass them through routes that accept exactly this form, never a UUID.
 */
import { randomBytes } from "node:crypto";
import { z } from "zod";

export const ID_LENGTH = 21;
export const ID_PATTERN = /^[A-Za-z0-9_-]{21}$/;
export const idSchema = z.string().regex(ID_PATTERN);

/** A fresh random id: the first 21 characters of 16 random bytes in base64url. */
export function newId(): string {
  return randomBytes(16).toString("base64url").slice(0, ID_LENGTH);
}

export function isId(text: unknown): text is string {
  return typeof text === "string" && ID_PATTERN.test(text);
}
