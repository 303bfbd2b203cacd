/** Makes the answer of the batch upload route from the outcome of each part. Pure. */
import { type ErrorCode, ServiceError, type UploadedFile } from "@svc/contracts";
import type { StoredPart } from "./store-part.ts";

export interface UploadOutcome {
  session: string;
  parts: readonly StoredPart[];
  /** Records of the stored parts, in their order. */
  stored: readonly UploadedFile[];
  maxFiles: number;
}

interface FailedItem {
  status: "error";
  filename: string;
  error: ErrorCode;
  message: string;
}

export interface BatchAnswer {
  status: number;
  headers?: Record<string, string>;
  body: {
    message: "success" | "partial_success" | "error";
    storage_session_id: string;
    files: (UploadedFile | FailedItem)[];
    succeeded: number;
    failed: number;
    error?: "upload_failed";
    request_id?: string;
    details?: string;
    filesLimitReached?: true;
    maxFiles?: number;
  };
}

const MAX_SHOWN_NAME = 256;

export function batchAnswer(outcome: UploadOutcome, requestId: string): BatchAnswer {
  const records = new Map(outcome.stored.map((file) => [file.id, file]));
  const files = outcome.parts.map((part) => (part.ok ? recordOf(records, part.id) : failedItem(part)));
  const failures = outcome.parts.filter((part) => !part.ok);
  const succeeded = files.length - failures.length;
  const limited = failures.some(({ error }) => error.code === "too_many_files");
  const common = {
    storage_session_id: outcome.session,
    files,
    succeeded,
    failed: failures.length,
    ...(limited ? { filesLimitReached: true as const, maxFiles: outcome.maxFiles } : {}),
  };
  if (failures.length === 0) return { status: 200, body: { message: "success", ...common } };
  if (succeeded > 0) return { status: 200, body: { message: "partial_success", ...common } };
  const status = failureStatus(failures.map(({ error }) => error));
  return {
    status,
    ...(status === 429 ? { headers: { ...failures[0]?.error.headers } } : {}),
    body: {
      message: "error",
      error: "upload_failed",
      request_id: requestId,
      ...common,
      details: failureSentence(failures.map(({ error }) => error)),
    },
  };
}

function recordOf(records: ReadonlyMap<string, UploadedFile>, id: string): UploadedFile {
  const record = records.get(id);
  if (record === undefined)
    throw new ServiceError("internal_error", undefined, { cause: "no record of a file" });
  return record;
}

function failedItem({ filename, error }: { filename: string; error: ServiceError }): FailedItem {
  const shown = filename.slice(0, MAX_SHOWN_NAME).toWellFormed();
  return { status: "error", filename: shown, error: error.code, message: error.message };
}

function failureStatus(errors: readonly ServiceError[]): number {
  if (errors.every(({ status }) => status === 413)) return 413;
  if (errors.every(({ status }) => status === 429)) return 429;
  if (errors.every(({ status }) => status >= 500)) return 502;
  return 400;
}

function failureSentence(errors: readonly ServiceError[]): string {
  const sentences = new Set(errors.map(({ message }) => message));
  const [first = ""] = sentences;
  return sentences.size === 1 ? `No file could be stored. ${first}` : "No file could be stored.";
}
