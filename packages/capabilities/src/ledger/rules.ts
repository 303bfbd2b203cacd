/**
 * The rules of the egress ledger: what a record holds, whether a grant is still valid, what a request costs, and what a failed
 * upload gives back. Pure: each rule makes a new record from an old one. `ledger.ts` updates `rev` and `changes`.
 */
import { CLOCK_SKEW_SECONDS } from "../envelope.ts";
import type { Grant } from "../grant.ts";

/** Most attempts to upload one id without a known failure. A runner retries a call fewer times. */
const MAX_TRIES = 16;

export interface RestoreOutcome {
  restored: boolean;
  session_state_restore_failed?: boolean | undefined;
  reason?: string | undefined;
}

/** The reservation of one file id. `tries`: attempts that may have succeeded. When none is left, the reservation ends. */
export interface Reserved {
  id: string;
  bytes: number;
  tries: string[];
}

export interface LedgerRecord {
  /** Number of changes so far. */
  rev: number;
  /** Random ids of the latest changes, the newest first. A process that lost the reply to a change recognises it by these. */
  changes: string[];
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
  /** Ids of the counted tool calls. A repeated call costs nothing. */
  tool_call_ids: string[];
  uploaded_bytes: number;
  output_file_ids: string[];
  /** One reservation for each output file, and one for the snapshot. */
  uploads: Reserved[];
  snapshot_object_id?: string;
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

/** One attempt to store a file. `bytes`: reserved before the body is read. `attempt`: a name for this attempt. */
export interface Upload {
  fileId: string;
  bytes: number;
  attempt: string;
}

/** What a request costs. `reads` are listings and downloads. Each single read or tool call counts as one request. */
export type Charge =
  | { kind: "reads"; count: number }
  | { kind: "tool_calls"; callIds: readonly string[] }
  | ({ kind: "write" } & Upload);

/** The part of a grant that its record contains. */
export type RecordedGrant = Omit<Grant, "iat" | "tenant_id" | "user_id" | "session_key">;

export function newRecord(grant: RecordedGrant, change: string): LedgerRecord {
  return {
    rev: 0,
    changes: [change],
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
    tool_call_ids: [],
    uploaded_bytes: 0,
    output_file_ids: [],
    uploads: [],
    ...(grant.snapshot_object_id === undefined ? {} : { snapshot_object_id: grant.snapshot_object_id }),
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

/** The record after a request, or the reason for a refusal, such as an exhausted budget. A refused request costs nothing. */
export function charge(record: LedgerRecord, cost: Charge): LedgerRecord | LedgerRefusal {
  if (cost.kind === "write") return reserve(record, cost);
  if (cost.kind === "tool_calls") return count(record, cost.callIds);
  const { count: reads } = cost;
  if (record.request_count + reads > record.max_requests) return "request_budget";
  return withReads(record, reads);
}

/** Gives back reads that were charged and not made. */
export function unread(record: LedgerRecord, reads: number): LedgerRecord {
  return withReads(record, -Math.min(reads, record.read_count));
}

const withReads = (record: LedgerRecord, reads: number): LedgerRecord => ({
  ...record,
  request_count: record.request_count + reads,
  read_count: record.read_count + reads,
});

/** Counts all tool calls that were not counted yet, or none when a budget has no room for all. */
function count(record: LedgerRecord, callIds: readonly string[]): LedgerRecord | LedgerRefusal {
  const counted = new Set(record.tool_call_ids);
  const fresh = [...new Set(callIds)].filter((id) => !counted.has(id));
  if (fresh.length === 0) return record;
  const request_count = record.request_count + fresh.length;
  const tool_call_count = record.tool_call_count + fresh.length;
  if (request_count > record.max_requests) return "request_budget";
  if (tool_call_count > record.max_tool_calls) return "tool_call_budget";
  return { ...record, request_count, tool_call_count, tool_call_ids: [...record.tool_call_ids, ...fresh] };
}

/**
 * Reserves what an upload needs. A repeated upload of an id costs only its request: the rest is already reserved, and storage
 * accepts only the same object again. The snapshot does not count as an output file and costs no request.
 */
function reserve(record: LedgerRecord, upload: Upload): LedgerRecord | LedgerRefusal {
  const { fileId, bytes, attempt } = upload;
  const known = record.uploads.find(({ id }) => id === fileId);
  if (known?.tries.includes(attempt)) return record;
  const snapshot = fileId === record.snapshot_object_id;
  if (!snapshot && record.request_count >= record.max_requests) return "request_budget";
  const counted = { ...record, request_count: record.request_count + (snapshot ? 0 : 1) };
  if (known !== undefined) {
    if (bytes !== known.bytes || known.tries.length >= MAX_TRIES) return "file_id_reused";
    return withReserved(counted, { ...known, tries: [...known.tries, attempt] });
  }
  if (!snapshot && record.output_file_ids.length >= record.max_output_files) return "output_files";
  if (record.uploaded_bytes + bytes > record.max_upload_bytes) return "upload_bytes";
  return {
    ...counted,
    upload_count: record.upload_count + 1,
    uploaded_bytes: record.uploaded_bytes + bytes,
    output_file_ids: snapshot ? record.output_file_ids : [...record.output_file_ids, fileId],
    uploads: [...record.uploads, { id: fileId, bytes, tries: [attempt] }],
  };
}

/** Replaces the reserved bytes of an upload by its real size. */
export function settle(record: LedgerRecord, { fileId }: Upload, real: number): LedgerRecord {
  const known = record.uploads.find(({ id }) => id === fileId);
  if (known === undefined || known.bytes === real) return record;
  const uploaded_bytes = record.uploaded_bytes - known.bytes + real;
  return withReserved({ ...record, uploaded_bytes }, { ...known, bytes: real });
}

/**
 * Records that an attempt definitely failed. When no other attempt of its id may have stored the file, the reservation ends:
 * bytes, file id and upload count are refunded. The request stays counted.
 */
export function refund(record: LedgerRecord, { fileId, attempt }: Upload): LedgerRecord {
  const known = record.uploads.find(({ id }) => id === fileId);
  if (!known?.tries.includes(attempt)) return record;
  const tries = known.tries.filter((one) => one !== attempt);
  if (tries.length > 0) return withReserved(record, { ...known, tries });
  return {
    ...record,
    upload_count: record.upload_count - 1,
    uploaded_bytes: record.uploaded_bytes - known.bytes,
    output_file_ids: record.output_file_ids.filter((id) => id !== fileId),
    uploads: record.uploads.filter(({ id }) => id !== fileId),
  };
}

function withReserved(record: LedgerRecord, reserved: Reserved): LedgerRecord {
  return { ...record, uploads: record.uploads.map((one) => (one.id === reserved.id ? reserved : one)) };
}

/** Revokes for good; the first reason stays. */
export function revoke(record: LedgerRecord, reason: string, nowMs: number): LedgerRecord {
  if (record.status === "revoked") return record;
  return { ...record, status: "revoked", revoked_at: nowMs, revoke_reason: reason };
}
