import { newId } from "@svc/contracts";
import { grantWith } from "@svc/test-kit/credentials/grants";
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
  type Upload,
  unread,
} from "../../src/index.ts";

const NOW = 1_800_000_000;
const grant = grantWith({ input_files: [{ id: newId(), session_id: newId(), name: "a" }] }, NOW);
const record = newRecord(grant, "first");
const calls = (...callIds: string[]) => ({ kind: "tool_calls", callIds }) as const;
const read: Charge = { kind: "reads", count: 1 };
const write = (fileId: string, bytes = 1, attempt = newId()): Charge => ({
  kind: "write",
  fileId,
  bytes,
  attempt,
});

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
    expect(charge(record, { kind: "tool_calls", callIds: ["call_001", "call_002"] })).toEqual({
      ...record,
      request_count: 2,
      tool_call_count: 2,
      tool_call_ids: ["call_001", "call_002"],
    });
    expect(charge(record, write("a", 7, "try"))).toEqual({
      ...record,
      request_count: 1,
      upload_count: 1,
      uploaded_bytes: 7,
      output_file_ids: ["a"],
      uploads: [{ id: "a", bytes: 7, tries: ["try"] }],
    });
  });

  it("of several reads counts them all, or none, and those that were not made are given back", () => {
    const small = { ...record, max_requests: 5 };
    const charged = charge(small, { kind: "reads", count: 4 });
    if (typeof charged === "string") throw new Error(charged);
    expect(charged).toEqual({ ...small, request_count: 4, read_count: 4 });
    expect(charge(charged, { kind: "reads", count: 2 })).toBe("request_budget");
    expect(unread(charged, 3)).toEqual({ ...small, request_count: 1, read_count: 1 });
    expect(unread(charged, 9)).toEqual(small);
  });

  it("of a tool call that was counted is free, also when the budgets are spent", () => {
    const call = calls("call_001");
    const called = charge({ ...record, max_requests: 1, max_tool_calls: 1 }, call);
    if (typeof called === "string") throw new Error(called);
    expect(charge(called, call)).toBe(called);
    expect(charge(called, calls("call_002"))).toBe("request_budget");
  });

  it("of several tool calls counts all that were not counted, or none", () => {
    const called = charge({ ...record, max_tool_calls: 3 }, calls("a", "b"));
    expect(charge(called as LedgerRecord, calls("b", "c", "d"))).toBe("tool_call_budget");
    expect(charge(called as LedgerRecord, calls("c", "a", "c"))).toMatchObject({
      request_count: 3,
      tool_call_count: 3,
      tool_call_ids: ["a", "b", "c"],
    });
  });

  it.each([
    ["request_budget", { max_requests: 0 }, read],
    ["request_budget", { max_requests: 0 }, write("a")],
    ["tool_call_budget", { max_tool_calls: 0 }, calls("call_001")],
    ["request_budget", { max_requests: 1 }, calls("call_001", "call_002")],
    ["output_files", { max_output_files: 0 }, write("a", 0)],
    ["upload_bytes", { max_upload_bytes: 6 }, write("a", 7)],
    ["file_id_reused", { uploads: [{ id: "a", bytes: 2, tries: ["try"] }], max_output_files: 1 }, write("a")],
    ["request_budget", { uploads: [{ id: "a", bytes: 1, tries: ["try"] }], max_requests: 0 }, write("a")],
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
  const first = { fileId: "a", bytes: 10, attempt: "first" };
  const again = { ...first, attempt: "again" };
  const after = (from: LedgerRecord, upload: Upload) =>
    charge(from, { kind: "write", ...upload }) as LedgerRecord;
  const reserved = after(record, first);

  it("that failed gives back its bytes, its id and its place, and may be tried again", () => {
    const given = refund(reserved, first);
    expect(given).toEqual({ ...record, request_count: 1 });
    expect(after(given, again)).toMatchObject({ uploaded_bytes: 10, upload_count: 1, request_count: 2 });
  });

  it("gives back once", () => {
    const given = refund(reserved, first);
    expect(refund(given, first)).toBe(given);
  });

  it("is charged once, however often the same try is", () => {
    expect(after(reserved, first)).toBe(reserved);
  });

  it("that is repeated costs one request more, also when every other budget is spent", () => {
    const tight = { ...reserved, max_upload_bytes: 10, max_output_files: 1 };
    expect(after(tight, again)).toEqual({
      ...tight,
      request_count: 2,
      uploads: [{ id: "a", bytes: 10, tries: ["first", "again"] }],
    });
  });

  it("stays charged while one of its tries may have stored it, whichever fails first", () => {
    const repeated = after(reserved, again);
    for (const [failed, left] of [
      [first, again],
      [again, first],
    ] as const) {
      const one = refund(repeated, failed);
      expect(one).toMatchObject({ uploaded_bytes: 10, output_file_ids: ["a"] });
      expect(refund(one, failed)).toBe(one);
      expect(refund(one, left)).toEqual({ ...record, request_count: 2 });
    }
  });

  it("of another size is no repeat", () => {
    expect(charge(reserved, write("a", 9))).toBe("file_id_reused");
  });

  it("may be repeated only so often", () => {
    let now = reserved;
    for (let tries = 1; tries < 16; tries++) now = after(now, { ...first, attempt: String(tries) });
    expect(charge(now, write("a", 10))).toBe("file_id_reused");
  });

  it("is settled with the bytes that it had", () => {
    expect(settle(reserved, first, 4)).toEqual({
      ...reserved,
      uploaded_bytes: 4,
      uploads: [{ id: "a", bytes: 4, tries: ["first"] }],
    });
    expect(refund(settle(reserved, first, 4), first)).toEqual({ ...record, request_count: 1 });
    expect(settle(reserved, first, 10)).toBe(reserved);
    expect(settle(reserved, { ...first, fileId: "b" }, 4)).toBe(reserved);
  });

  it("of the snapshot costs its bytes, but no request and no output file", () => {
    const spent = { ...record, snapshot_object_id: "a", max_requests: 0, max_output_files: 0 };
    const saved = after(spent, first);
    expect(saved).toEqual({
      ...spent,
      upload_count: 1,
      uploaded_bytes: 10,
      uploads: [{ id: "a", bytes: 10, tries: ["first"] }],
    });
    expect(after(saved, again)).toMatchObject({ request_count: 0, uploaded_bytes: 10, upload_count: 1 });
    expect(refund(saved, first)).toEqual(spent);
    expect(charge({ ...spent, max_upload_bytes: 9 }, { kind: "write", ...first })).toBe("upload_bytes");
    expect(charge(spent, write("b"))).toBe("request_budget");
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
  const begin = fc.record({
    do: fc.constant("begin" as const),
    fileId: fc.constantFrom("a", "b", "c", "d", "snapshot"),
    bytes: fc.nat({ max: 40 }),
    content: fc.nat({ max: 1 }),
  });
  const end = fc.record({
    do: fc.constant("end" as const),
    which: fc.nat(),
    how: fc.constantFrom(
      "answered" as const,
      "failed" as const,
      "answer lost" as const,
      "body lost" as const,
    ),
  });
  const step = fc.oneof(
    fc.constant({ do: "read" as const }),
    fc.record({
      do: fc.constant("tool_calls" as const),
      callIds: fc.array(fc.constantFrom("c1", "c2", "c3", "c4", "c5"), { maxLength: 5 }),
    }),
    fc.constant({ do: "revoke" as const }),
    { arbitrary: begin, weight: 3 },
    { arbitrary: end, weight: 3 },
  );
  const budgets = fc.record({
    max_requests: fc.nat({ max: 20 }),
    max_upload_bytes: fc.nat({ max: 100 }),
    max_output_files: fc.nat({ max: 4 }),
    max_tool_calls: fc.nat({ max: 4 }),
  });

  it("nothing is stored that is not charged, no budget is exceeded, a revoked record stays revoked", () => {
    fc.assert(
      fc.property(budgets, fc.array(step, { maxLength: 60 }), (limits, steps) => {
        let now: LedgerRecord = { ...record, ...limits, snapshot_object_id: "snapshot" };
        let revoked = false;
        const running: (Upload & { content: number })[] = [];
        const stored = new Map<string, { bytes: number; content: number }>();
        for (const one of steps) {
          if (one.do === "revoke") {
            now = revoke(now, "failed", 1);
            revoked = true;
          } else if (one.do === "begin") {
            const upload = { ...one, attempt: newId() };
            const after = charge(now, { kind: "write", ...upload });
            if (typeof after === "string") continue;
            now = after;
            running.push(upload);
          } else if (one.do === "end") {
            const [upload] = running.splice(one.which % Math.max(1, running.length), 1);
            if (upload === undefined) continue;
            const there = stored.get(upload.fileId);
            const taken = there !== undefined && there.content !== upload.content;
            const arrives = one.how === "answered" || one.how === "answer lost";
            if (arrives && there === undefined) stored.set(upload.fileId, upload);
            if (one.how === "failed" || (one.how === "answered" && taken)) now = refund(now, upload);
          } else {
            const after = charge(now, one.do === "read" ? read : calls(...one.callIds));
            if (typeof after !== "string") now = after;
          }
          expect(now.request_count).toBeLessThanOrEqual(now.max_requests);
          expect(now.tool_call_count).toBeLessThanOrEqual(now.max_tool_calls);
          expect(new Set(now.tool_call_ids).size).toBe(now.tool_call_count);
          expect(now.uploaded_bytes).toBeLessThanOrEqual(now.max_upload_bytes);
          expect(now.output_file_ids.length).toBeLessThanOrEqual(now.max_output_files);
          expect(now.uploaded_bytes).toBe(now.uploads.reduce((sum, { bytes }) => sum + bytes, 0));
          expect(now.upload_count).toBe(now.uploads.length);
          expect(now.output_file_ids).toEqual(
            now.uploads.map(({ id }) => id).filter((id) => id !== "snapshot"),
          );
          for (const [id, { bytes }] of stored) {
            expect(now.uploads.find((upload) => upload.id === id)?.bytes).toBe(bytes);
          }
          expect(now.status).toBe(revoked ? "revoked" : "active");
        }
      }),
      { numRuns: 2000 },
    );
  });
});
