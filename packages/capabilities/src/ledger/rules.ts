/**
 * The rules of the egress ledger: what a record holds, whether a grant is still good, what a request costs, and what a
 * failed upload gives back. Pure: each rule makes a new record from an old one; `rev` and `change` are the adapter's.
 */
import { CLOCK_SKEW_SECONDS } from "../envelope.ts";
import type { Grant } from "../grant.ts";

export interface RestoreOutcome {
  restored: boolean;
  session_state_restore_failed?: boolean | undefined;
  reason?: string | undefined;
}

export interface LedgerRecord {
  /** Counts the changes. */
  rev: number;
  /** Random name of the change that made this revision: who lost the answer to a change knows it again by this. */
  change: string;
  status: "active" | "revoked";
  grant_id: string;
  exec_id: string;
  exp: number;
  input_files: Grant["input_files"];
  read_sessions: string[];
  output_session_id: string;
  max_upload_bytes: number;
  max_output_files: number;
  max_requests: number;
  max_tool_calls: number;
  request_count: number;
  read_count: number;
  upload_count: number;
  tool_call_count: number;
  uploaded_bytes: number;
  output_file_ids: string[];
  revoked_at?: number;
  revoke_reason?: string;
  restore_outcome?: RestoreOutcome;
}

export type LedgerRefusal =
  | "missing"
  | "mismatch"
  | "revoked"
  | "expired"
  | "request_budget"
  | "tool_call_budget"
  | "output_files"
  | "upload_bytes"
  | "file_id_reused";

/** One output file: its id, and the bytes that are set aside for it before its body is read. */
export interface Upload {
  fileId: string;
  bytes: number;
}

/** What a request uses. Listing and reading are a `read`. */
export type Charge = { kind: "read" } | { kind: "tool_call" } | ({ kind: "write" } & Upload);

export function newRecord(grant: Grant, change: string): LedgerRecord {
  return {
    rev: 0,
    change,
    status: "active",
    grant_id: grant.grant_id,
    exec_id: grant.exec_id,
    exp: grant.exp,
    input_files: grant.input_files,
    read_sessions: grant.read_sessions,
    output_session_id: grant.output_session_id,
    max_upload_bytes: grant.max_upload_bytes,
    max_output_files: grant.max_output_files,
    max_requests: grant.max_requests,
    max_tool_calls: grant.max_tool_calls,
    request_count: 0,
    read_count: 0,
    upload_count: 0,
    tool_call_count: 0,
    uploaded_bytes: 0,
    output_file_ids: [],
  };
}

/** Why the ledger refuses the grant, or undefined. Order of checks: record, ids, status, expiry. */
export function ledgerVerdict(
  record: LedgerRecord | undefined,
  grant: Pick<Grant, "grant_id" | "exec_id">,
  required: boolean,
  now: number,
): LedgerRefusal | undefined {
  if (record === undefined) return required ? "missing" : undefined;
  if (record.grant_id !== grant.grant_id || record.exec_id !== grant.exec_id) return "mismatch";
  if (record.status !== "active") return "revoked";
  if (record.exp + CLOCK_SKEW_SECONDS < now) return "expired";
  return undefined;
}

/** The record after a request, or the budget that has no room for it. A refused request costs nothing. */
export function charge(record: LedgerRecord, cost: Charge): LedgerRecord | LedgerRefusal {
  if (record.request_count >= record.max_requests) return "request_budget";
  const counted = { ...record, request_count: record.request_count + 1 };
  switch (cost.kind) {
    case "read":
      return { ...counted, read_count: record.read_count + 1 };
    case "tool_call":
      if (record.tool_call_count >= record.max_tool_calls) return "tool_call_budget";
      return { ...counted, tool_call_count: record.tool_call_count + 1 };
    case "write":
      return reserve(counted, cost);
  }
}

function reserve(record: LedgerRecord, { fileId, bytes }: Upload): LedgerRecord | LedgerRefusal {
  if (record.output_file_ids.includes(fileId)) return "file_id_reused";
  if (record.output_file_ids.length >= record.max_output_files) return "output_files";
  if (record.uploaded_bytes + bytes > record.max_upload_bytes) return "upload_bytes";
  return {
    ...record,
    upload_count: record.upload_count + 1,
    uploaded_bytes: record.uploaded_bytes + bytes,
    output_file_ids: [...record.output_file_ids, fileId],
  };
}

/** Replaces the bytes set aside for an upload by those that it really had. */
export function settle(record: LedgerRecord, { fileId, bytes }: Upload, real: number): LedgerRecord {
  if (real === bytes || !record.output_file_ids.includes(fileId)) return record;
  return { ...record, uploaded_bytes: record.uploaded_bytes - bytes + real };
}

/** Gives back what a failed upload had set aside: its bytes, its file id, its place. The request stays counted. */
export function refund(record: LedgerRecord, { fileId, bytes }: Upload): LedgerRecord {
  if (!record.output_file_ids.includes(fileId)) return record;
  return {
    ...record,
    upload_count: record.upload_count - 1,
    uploaded_bytes: record.uploaded_bytes - bytes,
    output_file_ids: record.output_file_ids.filter((id) => id !== fileId),
  };
}

/** Revokes for good; the first reason stays. */
export function revoke(record: LedgerRecord, reason: string, nowMs: number): LedgerRecord {
  if (record.status === "revoked") return record;
  return { ...record, status: "revoked", revoked_at: nowMs, revoke_reason: reason };
}
