/**
 * API keys, and the file that lists them: one JSON object per line. The file holds a digest of each key, never the key.
 * A key has 256 random bits, so nobody can guess it and a plain SHA-256 is enough.
 * Problems name the wrong line but never quote it. Pure.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { principalId } from "./namespaces.ts";

const API_KEY = /^svc_[A-Za-z0-9_-]{43}$/;
export const API_KEY_CHARS = 47;
/** Every API key begins with this, so that people and secret scanners recognise it. */
export const API_KEY_PREFIX = "svc_";

/** A larger file is not read. */
export const MAX_API_KEYS_FILE_BYTES = 8 * 2 ** 20;
const MAX_LINE_CHARS = 8192;
const MAX_PROBLEMS = 10;
const MAX_SHOWN_CHARS = 40;

export const apiKeyId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);
export const apiKeyName = z
  .string()
  .regex(/^[^\p{Cc}]{1,100}$/u)
  .refine((text) => text.isWellFormed());
export const planId = z.string().min(1).max(256);
const instant = z.iso.datetime({ offset: true });

export const apiKeyRecordSchema = z.strictObject({
  id: apiKeyId,
  name: apiKeyName,
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  tenant: principalId,
  user: principalId,
  plan: planId.optional(),
  created_at: instant,
  expires_at: instant.optional(),
  revoked_at: instant.optional(),
});
export type ApiKeyRecord = z.infer<typeof apiKeyRecordSchema>;

export function isApiKey(text: string): boolean {
  return text.length === API_KEY_CHARS && API_KEY.test(text);
}

export function apiKeyDigest(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

export type ApiKeyState = "active" | "expired" | "revoked";

export function apiKeyState(
  { expires_at, revoked_at }: Pick<ApiKeyRecord, "expires_at" | "revoked_at">,
  nowMs: number,
): ApiKeyState {
  if (revoked_at !== undefined) return "revoked";
  return expires_at !== undefined && Date.parse(expires_at) <= nowMs ? "expired" : "active";
}

export interface ParsedApiKeys {
  records: ApiKeyRecord[];
  /** Empty when every line is valid. Otherwise the caller must not use `records`. */
  problems: string[];
}

export function parseApiKeys(text: string): ParsedApiKeys {
  const records: ApiKeyRecord[] = [];
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const [at, line] of text.split("\n").entries()) {
    if (problems.length >= MAX_PROBLEMS) break;
    if (line.trim() === "") continue;
    const found = parseLine(line);
    if (typeof found === "string") {
      problems.push(`line ${at + 1} ${found}`);
      continue;
    }
    const twice = [`id ${found.id}`, `sha256 ${found.sha256}`].some((key) => seen.has(key));
    if (twice) problems.push(`line ${at + 1} has the id or the sha256 of an earlier line`);
    seen.add(`id ${found.id}`).add(`sha256 ${found.sha256}`);
    records.push(found);
  }
  return { records, problems };
}

function parseLine(line: string): ApiKeyRecord | string {
  if (line.length > MAX_LINE_CHARS) return `has more than ${MAX_LINE_CHARS} characters`;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return "is not JSON";
  }
  const result = apiKeyRecordSchema.safeParse(value);
  if (result.success) return result.data;
  const wrong = new Set<string>();
  for (const issue of result.error.issues) {
    const names = issue.code === "unrecognized_keys" ? issue.keys : [String(issue.path[0] ?? "the object")];
    for (const name of names) wrong.add(name.slice(0, MAX_SHOWN_CHARS).replaceAll(/[^\w -]/g, "?"));
  }
  return `is no API key: missing, wrong or unknown: ${[...wrong].slice(0, MAX_PROBLEMS).join(", ")}`;
}

export function formatApiKeys(records: readonly ApiKeyRecord[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join("");
}
