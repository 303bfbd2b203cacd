import { newId } from "@svc/contracts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Charge,
  charge,
  type LedgerRecord,
  ledgerVerdict,
  newRecord,
  refund,
  revoke,
  settle,
} from "../../src/index.ts";
import { grantWith } from "../support/grants.ts";

const NOW = 1_800_000_000;
const grant = grantWith({ input_files: [{ id: newId(), session_id: newId(), name: "a" }] }, NOW);
const record = newRecord(grant, "first");
const read: Charge = { kind: "read" };
const write = (fileId: string, bytes = 1): Charge => ({ kind: "write", fileId, bytes });

describe("the ledger's verdict", () => {
  it.each([
    ["an active record lets the grant through", record, true, NOW, undefined],
    ["no record refuses it", undefined, true, NOW, "missing"],
    ["no record is tolerated where the ledger is not required", undefined, false, NOW, undefined],
    ["another grant's record refuses it", { ...record, grant_id: newId() }, true, NOW, "mismatch"],
    ["another execution's record refuses it", { ...record, exec_id: newId() }, true, NOW, "mismatch"],
    ["a revoked record refuses it", { ...record, status: "revoked" }, true, NOW, "revoked"],
    ["a revoked one counts where none is required", { ...record, status: "revoked" }, false, NOW, "revoked"],
    ["the record holds through the tolerance", record, true, grant.exp + 30, undefined],
    ["the record lapses after it", record, true, grant.exp + 31, "expired"],
    ["an expired one counts where none is required", record, false, grant.exp + 31, "expired"],
    ["revocation is told before expiry", { ...record, status: "revoked" }, true, grant.exp + 31, "revoked"],
    ["a status that nobody knows refuses it", { ...record, status: "paused" }, true, NOW, "revoked"],
  ] as const)("%s", (_what, found, required, now, verdict) => {
    expect(ledgerVerdict(found as LedgerRecord | undefined, grant, required, now)).toBe(verdict);
  });
});

describe("a charge", () => {
  it("counts what each kind of request uses, and nothing else", () => {
    expect(charge(record, read)).toEqual({ ...record, request_count: 1, read_count: 1 });
    expect(charge(record, { kind: "tool_call" })).toEqual({
      ...record,
      request_count: 1,
      tool_call_count: 1,
    });
    expect(charge(record, write("a", 7))).toEqual({
      ...record,
      request_count: 1,
      upload_count: 1,
      uploaded_bytes: 7,
      output_file_ids: ["a"],
    });
  });

  it.each([
    ["request_budget", { max_requests: 0 }, read],
    ["request_budget", { max_requests: 0 }, write("a")],
    ["tool_call_budget", { max_tool_calls: 0 }, { kind: "tool_call" }],
    ["output_files", { max_output_files: 0 }, write("a", 0)],
    ["upload_bytes", { max_upload_bytes: 6 }, write("a", 7)],
    ["file_id_reused", { output_file_ids: ["a"], max_output_files: 1 }, write("a")],
  ] as const)("is refused for %s: %j", (refusal, change, cost) => {
    expect(charge({ ...record, ...change } as LedgerRecord, cost)).toBe(refusal);
  });

  it("may use the last byte, the last file and the last request", () => {
    const tight = { ...record, max_upload_bytes: 7, max_output_files: 1, max_requests: 1 };
    const after = charge(tight, write("a", 7));
    expect(after).toMatchObject({ uploaded_bytes: 7, request_count: 1 });
    expect(charge(after as LedgerRecord, read)).toBe("request_budget");
  });
});

describe("an upload", () => {
  const reserved = charge(record, write("a", 10)) as LedgerRecord;

  it("that failed gives back its bytes, its id and its place, and may be tried again", () => {
    const given = refund(reserved, { fileId: "a", bytes: 10 });
    expect(given).toEqual({ ...record, request_count: 1 });
    expect(charge(given, write("a", 10))).toMatchObject({ uploaded_bytes: 10, request_count: 2 });
  });

  it("gives back once", () => {
    const given = refund(reserved, { fileId: "a", bytes: 10 });
    expect(refund(given, { fileId: "a", bytes: 10 })).toBe(given);
  });

  it("is settled with the bytes that it had", () => {
    expect(settle(reserved, { fileId: "a", bytes: 10 }, 4)).toEqual({ ...reserved, uploaded_bytes: 4 });
    expect(settle(reserved, { fileId: "a", bytes: 10 }, 10)).toBe(reserved);
    expect(settle(reserved, { fileId: "b", bytes: 10 }, 4)).toBe(reserved);
  });
});

describe("revoking", () => {
  it("keeps everything but the status, and the first reason", () => {
    const revoked = revoke(record, "failed", 5);
    expect(revoked).toEqual({ ...record, status: "revoked", revoke_reason: "failed", revoked_at: 5 });
    expect(revoke(revoked, "completed", 6)).toBe(revoked);
  });
});

describe("whatever happens", () => {
  const fileId = fc.constantFrom("a", "b", "c", "d");
  const bytes = fc.nat({ max: 40 });
  const step = fc.oneof(
    fc.constant({ do: "read" as const }),
    fc.constant({ do: "tool_call" as const }),
    fc.record({ do: fc.constant("write" as const), fileId, bytes, ends: fc.boolean() }),
    fc.constant({ do: "revoke" as const }),
  );

  it("no budget is exceeded, refusals change nothing, and a revoked record stays revoked", () => {
    const budgets = fc.record({
      max_requests: fc.nat({ max: 12 }),
      max_upload_bytes: fc.nat({ max: 100 }),
      max_output_files: fc.nat({ max: 4 }),
      max_tool_calls: fc.nat({ max: 4 }),
    });
    fc.assert(
      fc.property(budgets, fc.array(step, { maxLength: 40 }), (limits, steps) => {
        let now: LedgerRecord = { ...record, ...limits };
        const kept = new Map<string, number>();
        let revoked = false;
        for (const one of steps) {
          if (one.do === "revoke") {
            now = revoke(now, "failed", 1);
            revoked = true;
          } else {
            const after = charge(now, one.do === "write" ? { kind: "write", ...one } : { kind: one.do });
            if (typeof after === "string") continue;
            now = after;
            if (one.do === "write" && one.ends) kept.set(one.fileId, one.bytes);
            if (one.do === "write" && !one.ends) now = refund(now, one);
          }
          expect(now.request_count).toBeLessThanOrEqual(now.max_requests);
          expect(now.tool_call_count).toBeLessThanOrEqual(now.max_tool_calls);
          expect(now.uploaded_bytes).toBeLessThanOrEqual(now.max_upload_bytes);
          expect(now.output_file_ids).toEqual([...kept.keys()]);
          expect(now.upload_count).toBe(kept.size);
          expect(now.uploaded_bytes).toBe([...kept.values()].reduce((sum, size) => sum + size, 0));
          expect(kept.size).toBeLessThanOrEqual(now.max_output_files);
          expect(now.status).toBe(revoked ? "revoked" : "active");
        }
      }),
    );
  });
});
