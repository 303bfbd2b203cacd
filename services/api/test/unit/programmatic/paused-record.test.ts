import { outstandingCalls, pausedRecord, recordedCalls } from "@svc/api/programmatic/paused-record";
import type { ProgramRecord } from "@svc/api/programmatic/state";
import { callIdOf, type PausedCall, type PausedResponse } from "@svc/contracts";
import { describe, expect, it } from "vitest";

const MAX_CALLS = 5;
const paused = {
  stdout: "o",
  stderr: "e",
  execution_time: 7,
  runner_url: "http://one:2000",
} as PausedResponse;
const call = (call_id: string, tool_input: unknown = {}): PausedCall => ({
  call_id,
  tool_name: "t",
  tool_input,
});

/** The record after a pause at these calls, and what is added to the list. */
async function pause(before: ProgramRecord | undefined, calls: PausedCall[], answered: string[] = []) {
  const ids = calls.map(({ call_id }) => call_id);
  const outstanding = outstandingCalls(before, ids, answered, MAX_CALLS);
  const added = await recordedCalls(calls.filter(({ call_id }) => outstanding.added.has(call_id)));
  const to = pausedRecord(before, paused, outstanding, { added, stateBytes: before?.state_bytes ?? 100 });
  return { to, added };
}
const resuming = (record: ProgramRecord): ProgramRecord => ({
  ...record,
  status: "resuming",
  attempt: { results: "digest", mode: "live", number: 1 },
});
const ids = (...numbers: number[]) => numbers.map(callIdOf);

/** A program that has paused at its first two calls, and goes on with the results of some. */
async function begun(): Promise<ProgramRecord> {
  return resuming((await pause(undefined, [call("call_001"), call("call_002")])).to);
}
const outstandingAfter = async (next: string[], answered: string[]) =>
  outstandingCalls(await begun(), next, answered, MAX_CALLS);
const IMPOSSIBLE = expect.objectContaining({ code: "sandbox_execution_failed" });

describe("the record of a pause", () => {
  it("has new calls behind earlier ones, and unanswered calls keep their index", async () => {
    const first = await pause(undefined, [call("call_001", { b: 1, a: 2 }), call("call_002")]);
    expect(first.added.map(({ input_json }) => input_json)).toEqual(['{"a":2,"b":1}', "{}"]);
    expect(first.to).toMatchObject({ status: "paused", round: 1, calls: 2, run_ms: 7 });
    const second = await pause(resuming(first.to), [call("call_002"), call("call_003")], ["call_001"]);
    expect(second.added.map(({ call_id }) => call_id)).toEqual(["call_003"]);
    expect(second.to).toMatchObject({
      round: 2,
      calls: 3,
      pending: [
        { call_id: "call_002", at: 1 },
        { call_id: "call_003", at: 2 },
      ],
    });
    expect(second.to.state_bytes).toBeGreaterThan(first.to.state_bytes);
    expect(second.to.stored_bytes).toBeGreaterThan(Number(first.to.stored_bytes));
    expect(second.to).not.toHaveProperty("attempt");
  });

  it("counts new calls in bytes as they are stored, and again for the tool call server", async () => {
    const { to, added } = await pause(undefined, [call("call_001", { x: "é\n".repeat(100) })]);
    const bytes = Buffer.byteLength(JSON.stringify(added[0]));
    expect(bytes).toBeGreaterThan(500);
    expect(to.state_bytes).toBe(100 + bytes);
    expect(to.stored_bytes).toBeGreaterThanOrEqual(100 + 2 * bytes);
    const { stored_bytes: _, ...earlier } = { ...resuming(to), history_bytes: 7 };
    const next = (await pause(earlier, [call("call_001")])).to;
    expect(next.stored_bytes).toBe(to.state_bytes + 7);
  });
});

it("other work goes on while many large calls are made ready to be stored", async () => {
  let turns = 0;
  let next = setImmediate(() => undefined);
  const count = () => {
    turns++;
    next = setImmediate(count);
  };
  count();
  const calls = Array.from({ length: 16 }, (_, at) => call(callIdOf(at + 1), { x: "x".repeat(100_000) }));
  expect(await recordedCalls(calls)).toHaveLength(16);
  clearImmediate(next);
  expect(turns).toBeGreaterThanOrEqual(15);
});

describe("the calls of a pause", () => {
  it("may be all that a program may make, with numbers of calls that were refused left out", async () => {
    const { pending, highest } = await outstandingAfter(ids(2, 4, 7, 8), ids(1));
    expect(pending.map(({ at }) => at)).toEqual([1, 2, 3, 4]);
    expect(highest).toBe(8);
  });

  it.each<[what: string, next: string[]]>([
    ["one that has its result", ids(1, 3)],
    ["one that has its result alone", ids(1)],
    ["the same new one twice", ids(3, 3)],
    ["new ones in another order", ids(4, 3)],
    ["an id that no runner gives", ["other_003"]],
    ["a number in another spelling", ["call_0002"]],
    ["more than it may make", ids(3, 4, 5, 6)],
  ])("are not %s", async (_, next) => {
    await expect(outstandingAfter(next, ids(1, 2))).rejects.toEqual(IMPOSSIBLE);
  });

  it("of a first pause are no more than a program may make, either", () => {
    expect(outstandingCalls(undefined, ids(1, 2, 3, 4, 5), [], MAX_CALLS).pending).toHaveLength(5);
    expect(() => outstandingCalls(undefined, ids(1, 2, 3, 4, 5, 6), [], MAX_CALLS)).toThrow(IMPOSSIBLE);
  });

  it("are not an answered one although a pause since then did not name it", async () => {
    const first = resuming((await pause(undefined, [call("call_001"), call("call_004")])).to);
    const second = resuming((await pause(first, [call("call_001")], ["call_004"])).to);
    const again = () => outstandingCalls(second, ids(3), ["call_001"], MAX_CALLS);
    expect(again).toThrow(IMPOSSIBLE);
    expect(outstandingCalls(second, ids(5), ["call_001"], MAX_CALLS).highest).toBe(5);
  });

  it("may wait on when the limit was lowered meanwhile, and none is new", async () => {
    expect(outstandingCalls(await begun(), ids(2), ids(1), 1).pending).toEqual([
      { call_id: "call_002", at: 1 },
    ]);
    const next = outstandingCalls(await begun(), ids(2), ids(1), 2);
    expect(next.added.size).toBe(0);
  });

  it("of a record of an earlier version are new above its count, too", async () => {
    const { highest_call: _, ...earlier } = await begun();
    const outstanding = (next: string[]) => outstandingCalls(earlier, next, ids(1, 2), MAX_CALLS);
    expect(() => outstanding(ids(2))).toThrow(IMPOSSIBLE);
    expect(outstanding(ids(3)).highest).toBe(3);
  });
});
