import { newId, SNAPSHOT_NAME } from "@svc/contracts";
import type { Left } from "@svc/session-store";
import { jobOf } from "@svc/test-kit/components/messages";
import {
  leftBy,
  type Outcome,
  outcomeOf,
  persistSession,
  sessionFields,
  withSnapshot,
} from "@svc/worker/sessions/sessions";
import { describe, expect, it } from "vitest";

const from = { id: newId(), storage_session_id: newId(), size: 5 };
const first = {
  namespace: "t:user:u",
  hint: undefined,
  sessionId: newId(),
  to: { id: newId(), storage_session_id: newId() },
};
const later = { ...first, from };
const said = (persisted: boolean, failed = false, more: object = {}) => ({
  session_state_persisted: persisted,
  session_state_restore_failed: failed,
  ...more,
});

describe("a run of a session", () => {
  it("has the snapshot among its inputs, behind those of the caller, and the runner is told where its own goes", () => {
    const job = jobOf({ files: [{ id: newId(), storage_session_id: newId(), name: "a", kind: "user" }] });
    expect(withSnapshot(job, first)).toBe(job);
    expect(persistSession(first)).toEqual({ file_id: first.to.id, filename: SNAPSHOT_NAME, restore: false });
    const { id, storage_session_id } = from;
    const snapshot = { id, storage_session_id, name: SNAPSHOT_NAME, kind: "user" };
    expect(withSnapshot(job, later).files).toEqual([...job.files, snapshot]);
    expect(persistSession(later)).toEqual({ file_id: first.to.id, filename: SNAPSHOT_NAME, restore: true });
  });
});

describe("a run whose session cannot be looked up", () => {
  it("has a restore that fails, so that it begins with nothing and nothing of it is kept", () => {
    expect(persistSession(undefined)).toMatchObject({ filename: SNAPSHOT_NAME, restore: true });
  });
});

describe("what a run left, as its runner says", () => {
  it.each([
    [said(true, false, { session_snapshot: { unchanged: false, size: 9 } }), { kind: "stored", size: 9 }],
    [said(true, false, { session_snapshot: { unchanged: true, size: 0 } }), { kind: "unchanged" }],
    [said(true), undefined],
    [said(false, false, { session_snapshot: { unchanged: false, size: 9 } }), undefined],
    [said(true, true, { session_snapshot: { unchanged: false, size: 9 } }), { kind: "failed" }],
  ])("%j is %j", (answer, left) => expect(leftBy(later, answer)).toEqual(left));

  it("is no failed restore where there was nothing to restore", () => {
    expect(leftBy(first, said(false, true))).toBeUndefined();
  });
});

describe("what an answer says of the session", () => {
  it.each([
    ["current", {}, said(true)],
    ["none", {}, said(false)],
    ["gone", {}, said(false)],
    ["failed", said(false, true), said(false, true)],
    ["conflict", {}, said(false, false, { session_state_conflict: true })],
    [undefined, {}, said(false, true)],
    ["current", { session_state_dropped: [] }, said(true)],
  ] as [Outcome | undefined, object, object][])("%j with %j is %j", (settled, answer, fields) =>
    expect(sessionFields(settled, answer)).toEqual(fields),
  );

  it("names the variables that were not kept", () => {
    const session_state_dropped = [{ name: "f", reason: "cannot pickle a file" }];
    expect(sessionFields("current", { session_state_dropped })).toMatchObject({ session_state_dropped });
  });
});

describe("what became of the state, for the metrics", () => {
  it.each([
    ["saved", said(true), { kind: "stored", size: 9 }],
    ["unchanged", said(true), { kind: "unchanged" }],
    ["conflict", said(false, false, { session_state_conflict: true }), { kind: "stored", size: 9 }],
    ["restore_failed", said(false, true), { kind: "failed" }],
    ["restore_failed", said(false, true, { session_state_conflict: true }), { kind: "failed" }],
    ["restore_failed", said(false, true), undefined],
    ["not_saved", said(false), { kind: "none" }],
    ["not_saved", said(false), { kind: "stored", size: 9 }],
  ] as [string, ReturnType<typeof said>, Left | undefined][])(
    "is %s for %j after %j",
    (outcome, fields, left) => expect(outcomeOf(fields, left)).toBe(outcome),
  );
});
