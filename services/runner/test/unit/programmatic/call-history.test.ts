import type { RecordedCall } from "@svc/contracts";
import { CallHistory, type Issued } from "@svc/runner/programmatic/call-history";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const TOOLS = ["a", "b"];
const callArbitrary = fc.record({
  name: fc.constantFrom(...TOOLS),
  input: fc.record({ x: fc.integer({ min: 0, max: 2 }) }),
});
const recordArbitrary = fc.record({
  call: callArbitrary,
  outcome: fc.option(fc.record({ result_json: fc.json() }), { nil: undefined }),
});
const idOf = (number: number) => `call_${String(number).padStart(3, "0")}`;
const historyOf = (records: readonly { call: Call; outcome: Outcome }[]): RecordedCall[] =>
  records.map(({ call, outcome }, at) => ({
    call_id: idOf(at + 1),
    name: call.name,
    input_json: JSON.stringify(call.input),
    ...(outcome === undefined ? {} : { outcome }),
  }));
type Call = { name: string; input: { x: number } };
type Outcome = { result_json: string } | undefined;
const callIdOf = (issued: Issued) => (issued.kind === "fault" ? undefined : issued.callId);

describe("calls without history", () => {
  it("are numbered in issue order and outstanding until they are answered", () => {
    fc.assert(
      fc.property(
        fc.array(callArbitrary, { maxLength: 30 }),
        fc.array(fc.nat(), { maxLength: 10 }),
        (calls, answers) => {
          const own = new CallHistory({ tools: TOOLS, maxCalls: 200 });
          const ids = calls.map(({ name, input }) => callIdOf(own.issue(name, input)));
          expect(ids).toEqual(calls.map((_, at) => idOf(at + 1)));
          const answered = new Set(answers.map((at) => idOf((at % (calls.length + 1)) + 1)));
          for (const id of answered) own.answered(id);
          expect(own.outstanding).toEqual(ids.filter((id) => !answered.has(id as string)));
          expect(own.hasOutstanding).toBe(own.outstanding.length > 0);
          expect([own.made, own.unused]).toEqual([calls.length, 0]);
        },
      ),
    );
  });

  it("are as many as may be made, and not one more", () => {
    const own = new CallHistory({ tools: TOOLS, maxCalls: 2 });
    const kinds = [1, 2, 3].map(() => own.issue("a", {}).kind);
    expect(kinds).toEqual(["outstanding", "outstanding", "fault"]);
    expect(own.issue("a", {})).toEqual({ kind: "fault", fault: { type: "tool_limit" } });
    expect(own.made).toBe(2);
  });

  it("are of declared tools only", () => {
    const own = new CallHistory({ tools: TOOLS, maxCalls: 0 });
    for (const name of ["c", "", "A", "__proto__", "constructor"]) {
      expect(own.issue(name, {})).toEqual({
        kind: "fault",
        fault: { type: "unregistered_tool", tool: name },
      });
    }
  });
});

describe("calls with a history", () => {
  it("that are repeated in any order have their records, equal ones in issue order, each once", () => {
    const property = fc.property(
      fc
        .array(recordArbitrary, { maxLength: 12 })
        .chain((records) =>
          fc.tuple(
            fc.constant(records),
            fc.shuffledSubarray([...records.keys()], { minLength: records.length }),
          ),
        ),
      ([records, order]) => {
        const history = historyOf(records);
        const own = new CallHistory({ tools: TOOLS, maxCalls: 0, recorded: history });
        const left = history.map((record) => record);
        for (const at of order) {
          const { name, input } = (records[at] as { call: Call }).call;
          const expected = left.findIndex(
            (record) => record.name === name && record.input_json === JSON.stringify(input),
          );
          const [record] = left.splice(expected, 1);
          const issued = own.issue(name, input);
          expect(callIdOf(issued)).toBe(record?.call_id);
          expect(issued).toEqual(
            record?.outcome === undefined
              ? { kind: "outstanding", callId: record?.call_id }
              : { kind: "recorded", callId: record.call_id, outcome: record.outcome },
          );
          expect(own.unused).toBe(left.length);
        }
        expect(own.made).toBe(records.length);
      },
    );
    fc.assert(property);
  });

  it("that are new get numbers after the highest recorded one, and count against the rest of the budget", () => {
    const history = [
      { call_id: "call_007", name: "a", input_json: '{"x":1}' },
      { call_id: "call_1000", name: "a", input_json: '{"x":2}' },
    ];
    const own = new CallHistory({ tools: TOOLS, maxCalls: 2, recorded: history });
    expect([own.issue("a", { x: 9 }), own.issue("a", { x: 1 }), own.issue("a", { x: 1 })]).toEqual([
      { kind: "outstanding", callId: "call_1001" },
      { kind: "outstanding", callId: "call_007" },
      { kind: "outstanding", callId: "call_1002" },
    ]);
    expect(own.issue("a", { x: 1 })).toMatchObject({ kind: "fault" });
    expect(own.unused).toBe(1);
    expect(own.outstanding).toEqual(["call_1001", "call_007", "call_1002"]);
  });

  it("are matched by canonical arguments", () => {
    const history = [{ call_id: "call_001", name: "a", input_json: '{ "y": {"b":1,"a":[1.0]}, "x": 1e0 }' }];
    const own = new CallHistory({ tools: TOOLS, maxCalls: 0, recorded: history });
    expect(own.issue("a", { x: 1, y: { a: [1], b: 1 } })).toMatchObject({ callId: "call_001" });
  });

  it("may be as large and as many as they are: recorded calls of 65,000 elements, and 200,000 of them", () => {
    const large = `{"x":[${"0,".repeat(64_999)}0]}`;
    const own = new CallHistory({
      tools: TOOLS,
      maxCalls: 0,
      recorded: [{ call_id: "call_001", name: "a", input_json: large, outcome: { result_json: "1" } }],
    });
    expect(own.issue("a", JSON.parse(large))).toMatchObject({ kind: "recorded", callId: "call_001" });
    const many = Array.from({ length: 200_000 }, (_, at) => ({
      call_id: idOf(at + 1),
      name: "a",
      input_json: "{}",
    }));
    expect(new CallHistory({ tools: TOOLS, maxCalls: 1, recorded: many }).unused).toBe(200_000);
  });
});
