import { reportedCalls } from "@svc/api/programmatic/paused-record";
import type { Program } from "@svc/api/programmatic/state";
import type { PausedCall, PausedResponse } from "@svc/contracts";
import { describe, expect, it } from "vitest";

const program = { tools: [{ name: "add" }, { name: "look-up" }] } as Program;
const paused = (pending_call_ids: string[], pending_calls?: PausedCall[]) =>
  ({ pending_call_ids, pending_calls }) as PausedResponse;
const call = (call_id: string, tool_name = "add", tool_input: unknown = { a: 1 }) => ({
  call_id,
  tool_name,
  tool_input,
});

describe("the calls that a pause reports", () => {
  it("are accepted as they are, with arguments of any names", () => {
    const input = JSON.parse('{"__proto__":{"a":1},"constructor":[]}');
    const calls = [call("call_001"), call("call_002", "look-up", input)];
    expect(reportedCalls(program, paused(["call_001", "call_002"], calls))).toBe(calls);
  });

  it.each([
    ["none are reported", paused(["call_001"])],
    ["one is missing", paused(["call_001", "call_002"], [call("call_001")])],
    ["one has another id", paused(["call_001"], [call("call_002")])],
    ["they are in another order", paused(["call_001", "call_002"], [call("call_002"), call("call_001")])],
    ["a tool was not declared", paused(["call_001"], [call("call_001", "delete")])],
    ["arguments are null", paused(["call_001"], [call("call_001", "add", null)])],
    ["arguments are a list", paused(["call_001"], [call("call_001", "add", [1])])],
    ["arguments are a text", paused(["call_001"], [call("call_001", "add", "a")])],
  ])("are read from the tool call server when %s", (_, answer) => {
    expect(reportedCalls(program, answer)).toBeUndefined();
  });
});
