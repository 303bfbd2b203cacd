/**
 * The egress ledger: one record per grant in Redis, the truth about whether a grant is still good. Only the gateway calls it.
 * `ledgerVerdict` is pure; the class is its Redis adapter.
 */
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import { CLOCK_SKEW_SECONDS } from "./envelope.ts";
import type { Grant } from "./grant.ts";

export interface LedgerRecord {
  status: "active" | "revoked";
  rev: number;
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
}

export type LedgerRefusal = "missing" | "mismatch" | "revoked" | "expired";

export const ledgerKey = (grantId: string) => `svc:egress:grant:${grantId}`;

/** A new record. `status` and `rev` come first: the revoke script relies on that order. */
export function newRecord(grant: Grant): LedgerRecord {
  return {
    status: "active",
    rev: 0,
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
  grant: Grant,
  required: boolean,
  now: number,
): LedgerRefusal | undefined {
  if (record === undefined) return required ? "missing" : undefined;
  if (record.grant_id !== grant.grant_id || record.exec_id !== grant.exec_id) return "mismatch";
  if (record.status !== "active") return "revoked";
  if (record.exp + CLOCK_SKEW_SECONDS < now) return "expired";
  return undefined;
}

const REVOKE = readFileSync(new URL("./lua/revoke.lua", import.meta.url), "utf8");

type WithCommands = Redis & { svcRevokeGrant: (key: string, reason: string, now: number) => Promise<number> };

export class Ledger {
  readonly #redis: WithCommands;
  readonly #graceSeconds: number;

  constructor(redis: Redis, graceSeconds: number) {
    redis.defineCommand("svcRevokeGrant", { numberOfKeys: 1, lua: REVOKE });
    this.#redis = redis as WithCommands;
    this.#graceSeconds = graceSeconds;
  }

  /** Stores the record of a new grant. A second registration of the same id is a bug and throws. */
  async register(grant: Grant, now: number): Promise<void> {
    const ttl = Math.max(1, grant.exp - now + this.#graceSeconds);
    const stored = await this.#redis.set(
      ledgerKey(grant.grant_id),
      JSON.stringify(newRecord(grant)),
      "EX",
      ttl,
      "NX",
    );
    if (stored !== "OK") throw new Error("a grant was registered twice");
  }

  async find(grantId: string): Promise<LedgerRecord | undefined> {
    const text = await this.#redis.get(ledgerKey(grantId));
    return text === null ? undefined : (JSON.parse(text) as LedgerRecord);
  }

  /** Revokes for good. Unknown and revoked grants are fine. */
  async revoke(grantId: string, reason: string, now: number): Promise<void> {
    await this.#redis.svcRevokeGrant(ledgerKey(grantId), reason, now * 1000);
  }
}
