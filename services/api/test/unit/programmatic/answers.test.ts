import { type EndedRound, endAnswer } from "@svc/api/programmatic/completion";
import { pauseAnswer } from "@svc/api/programmatic/pause";
import { endOf } from "@svc/api/programmatic/round-jobs";
import { newId } from "@svc/contracts";
import { describe, expect, it } from "vitest";

const session = newId();
const ended = (fields: Partial<EndedRound>): EndedRound => ({
  session_id: session,
  stdout: "o",
  stderr: "e",
  files: [],
  code: 0,
  signal: null,
  message: null,
  status: null,
  wall_time: 5,
  cpu_time: 4,
  memory: 1,
  language: "python",
  version: "3",
  timings: {},
  execution_time: 12,
  tool_calls_made: 3,
  ...fields,
});
const paused = {
  paused: true as const,
  session_id: "label",
  pending_call_ids: ["call_001", "call_002"],
  stdout: "o",
  stderr: "e",
  execution_time: 7,
  tool_calls_made: 2,
  runner_url: "http://localhost:2000",
  language: "python",
  version: "3",
  limits: { run_timeout_ms: 60_000, memory_bytes: 512 << 20 },
};

describe("the answer of a program that ended", () => {
  it("holds what the interface names, and nothing more", () => {
    expect(endAnswer(ended({ deleted_files: ["a"] }), 200)).toEqual({
      status: "completed",
      session_id: session,
      stdout: "o",
      stderr: "e",
      files: [],
      deleted_files: ["a"],
      code: 0,
      signal: null,
      sandbox_status: null,
      execution_time: 12,
      tool_calls_made: 3,
    });
  });

  it.each([
    [{ status: "TO", code: 137, signal: "SIGKILL" }, "timeout", "Time limit exceeded"],
    [{ status: "ML", code: 137, signal: "SIGKILL" }, "memory_limit", "Out of memory"],
    [{ status: "OL", code: 137, signal: "SIGKILL" }, "output_limit", "stdout length exceeded"],
    [{ status: "EL", code: 137, signal: "SIGKILL" }, "output_limit", "stderr length exceeded"],
    [{ status: "SG", code: 139, signal: "SIGSEGV" }, "signal", "Sandbox exited with code 139"],
    [{ code: 3 }, "nonzero_exit", "Sandbox exited with code 3"],
    [{ status: "OL", code: 2 }, "nonzero_exit", "Sandbox exited with code 2"],
    [
      { code: 137, signal: "SIGKILL", programmatic_fault: { type: "unregistered_tool", tool: "x y" } },
      "unregistered_tool",
      "Sandbox requested an unregistered tool: x y",
    ],
    [
      { programmatic_fault: { type: "tool_limit" } },
      "tool_limit",
      "Execution exceeded maximum tool calls (150)",
    ],
    [
      { programmatic_fault: { type: "replay_diverged" } },
      "replay_diverged",
      "The program did not repeat its recorded tool calls",
    ],
  ] as [Partial<EndedRound>, string, string][])("says why it failed: %j", (fields, error_type, error) => {
    const answer = endAnswer(ended(fields), 150);
    expect(answer).toMatchObject({ status: "error", error_type, error, code: fields.code ?? 0 });
    expect(answer).not.toHaveProperty("programmatic_fault");
  });

  it.each(["OL", "EL"] as const)("is complete when only its output was cut: %s", (status) => {
    expect(endAnswer(ended({ status }), 200)).toMatchObject({ status: "completed", sandbox_status: status });
  });
});

describe("a pause", () => {
  it("shows calls in order, arguments twice", () => {
    const calls = [{ call_id: "call_001", tool_name: "a b", tool_input: { x: 1 } }];
    expect(pauseAnswer(paused, session, calls, "token")).toEqual({
      status: "tool_call_required",
      session_id: session,
      continuation_token: "token",
      tool_calls: [{ id: "call_001", name: "a b", arguments: { x: 1 }, input: { x: 1 } }],
      partial_stdout: "o",
      partial_stderr: "e",
      tool_calls_made: 2,
      execution_time: 7,
      limits: paused.limits,
    });
  });

  it("tells the limit of one round where a replay was given the time of all", () => {
    const told = (answer: Record<string, unknown>) => endOf({ ok: true, answer }, { run_timeout: 1000 });
    const { memory_bytes } = paused.limits;
    const limits = { run_timeout_ms: 1000, memory_bytes };
    expect(told(paused)).toMatchObject({ paused: { limits } });
    expect(told({ ...ended({}), limits: paused.limits })).toMatchObject({ ended: { limits } });
    const { limits: _, ...untold } = paused;
    expect(told(untold)).toEqual({ paused: untold });
    expect(pauseAnswer(untold, session, [], "token")).not.toHaveProperty("limits");
  });
});
