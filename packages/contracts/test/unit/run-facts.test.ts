import { describe, expect, it } from "vitest";
import { factsOfAnswer, outcomeOfError } from "../../src/run-facts.ts";

describe("the outcome of a run", () => {
  it.each([
    [{ status: null, code: 0 }, "success"],
    [{ status: null, code: 3 }, "program_error"],
    [{ status: "SG", code: 139 }, "program_error"],
    [{ status: "TO", code: 137 }, "timeout"],
    [{ status: "ML", code: 137 }, "memory_limit"],
    [{ status: "OL", code: 0 }, "output_limit"],
    [{ status: "EL", code: 137 }, "output_limit"],
    [{ status: "CE", code: 1 }, "compile_error"],
    [{ status: null, code: 0, programmatic_fault: { type: "tool_limit" } }, "program_error"],
    [{ paused: true }, "paused"],
    [{}, "program_error"],
  ])("of the answer %j is %s", (answer, outcome) => {
    expect(factsOfAnswer(answer).outcome).toBe(outcome);
  });

  it("of an error says who caused it", () => {
    expect(outcomeOfError({ code: "execution_cancelled", status: 409 })).toBe("cancelled");
    expect(outcomeOfError({ code: "file_reference_denied", status: 403 })).toBe("bad_request");
    expect(outcomeOfError({ code: "execution_timeout", status: 504 })).toBe("execution_error");
  });
});

it("the facts of a pause are what it waited and ran", () => {
  const paused = { paused: true, execution_time: 7.5, stdout: "secret", timings: { queue_ms: 2 } };
  expect(factsOfAnswer(paused)).toEqual({ outcome: "paused", queue_ms: 2, run_ms: 7.5 });
  expect(factsOfAnswer({ paused: true })).toEqual({ outcome: "paused" });
});

it("the facts of an answer are timings and names of limits, and nothing else of it", () => {
  const answer = {
    stdout: "secret",
    files: [{ name: "secret" }],
    status: null,
    code: 0,
    timings: { queue_ms: 1, setup_ms: 2, run_ms: 3.5, collect_ms: "4", other: 5 },
    limits_reached: [{ limit: "processes", value: 64 }],
  };
  expect(factsOfAnswer(answer)).toEqual({
    outcome: "success",
    queue_ms: 1,
    setup_ms: 2,
    run_ms: 3.5,
    limits_reached: ["processes"],
  });
});
