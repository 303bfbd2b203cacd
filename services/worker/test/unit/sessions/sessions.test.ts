import { newId, SNAPSHOT_NAME } from "@svc/contracts";
import type { Log } from "@svc/service-kit";
import type { Left, SessionStore, Settled } from "@svc/session-store";
import { jobOf } from "@svc/test-kit/components/messages";
import {
  leftBy,
  type Outcome,
  outcomeOf,
  persistSession,
  Sessions,
  sessionFields,
  withSnapshot,
} from "@svc/worker/sessions/sessions";
import { describe, expect, it, vi } from "vitest";

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

/** The sessions of a store that settles as it is told, one call after the other. */
function settling(settle: () => Promise<Settled>) {
  const log = { warn: () => undefined } as unknown as Log;
  const metrics = { answered: () => undefined, stored: () => undefined };
  const calls = vi.fn(settle);
  const sessions = new Sessions({ settle: calls } as unknown as SessionStore, log, metrics);
  const run = (signal: AbortSignal) => sessions.settle(later, { kind: "stored", size: 9 }, "request", signal);
  return { run, calls };
}
const never = new AbortController().signal;
const silent = () => Promise.reject(new Error("Command timed out"));
const refusing = () => Promise.reject(Object.assign(new Error("NOPERM"), { name: "ReplyError" }));

describe("what becomes of a state that a run left", () => {
  it("is asked until the store answers, however long it is silent", async () => {
    let silences = 6;
    const { run, calls } = settling(async () => (silences-- > 0 ? silent() : "current"));
    expect(await run(never)).toBe("current");
    expect(calls).toHaveBeenCalledTimes(7);
  });

  it("is none when the store refuses: soon, however long it was silent before", async () => {
    let silences = 2;
    const { run, calls } = settling(() => (silences-- > 0 ? silent() : refusing()));
    expect(await run(never)).toBe("none");
    expect(calls).toHaveBeenCalledTimes(6);
  });

  it("is not known when the job ends before, and a call that is under way is not waited for", async () => {
    for (const settle of [silent, () => new Promise<never>(() => undefined)]) {
      const ended = new AbortController();
      const settled = settling(settle).run(ended.signal);
      setTimeout(() => ended.abort(new Error("the job ended")), 20);
      await expect(settled).rejects.toThrow("the job ended");
    }
  });

  it("is settled by one call of a store that answers", async () => {
    const { run, calls } = settling(async () => "conflict");
    expect(await run(never)).toBe("conflict");
    expect(calls).toHaveBeenCalledTimes(1);
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
