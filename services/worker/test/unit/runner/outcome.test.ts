import { type ErrorCode, ServiceError } from "@svc/contracts";
import { isNeverAccepted, outcomeOf } from "@svc/worker/runner/outcome";
import { describe, expect, it } from "vitest";

const failure = (code: ErrorCode, cause?: unknown, status?: number) =>
  new ServiceError(code, undefined, { cause, ...(status === undefined ? {} : { status }) });
const unanswered = (code: string, syscall?: string) =>
  failure("sandbox_execution_failed", Object.assign(new Error("x"), { code, syscall }));

describe("a failed call", () => {
  it.each([
    ["ECONNREFUSED", "connect", "failed"],
    ["EHOSTUNREACH", "connect", "silent"],
    ["ENOTFOUND", "getaddrinfo", "silent"],
    ["UND_ERR_CONNECT_TIMEOUT", undefined, "silent"],
  ])("that got no connection (%s) goes to another runner", (code, syscall, outcome) => {
    expect(isNeverAccepted(unanswered(code, syscall))).toBe(true);
    expect(outcomeOf(unanswered(code, syscall))).toBe(outcome);
  });

  it.each([
    ["ECONNRESET", "read"],
    ["EHOSTUNREACH", "read"],
    ["UND_ERR_SOCKET", undefined],
  ])("whose connection broke (%s, %s) may have begun, and goes to no other", (code, syscall) => {
    expect(isNeverAccepted(unanswered(code, syscall))).toBe(false);
    expect(outcomeOf(unanswered(code, syscall))).toBe("failed");
  });

  it("that found no slot or no started runner goes to another runner", () => {
    expect(isNeverAccepted(failure("runner_busy", "inner answer 503"))).toBe(true);
    expect(outcomeOf(failure("runner_busy", "inner answer 503"))).toBe("busy");
    expect(isNeverAccepted(failure("starting_up"))).toBe(true);
  });

  it("that a runner refused because it stops goes to another runner; one that it broke off may have begun", () => {
    expect(isNeverAccepted(failure("shutting_down", "inner answer 503"))).toBe(true);
    expect(outcomeOf(failure("shutting_down", "inner answer 503"))).toBe("failed");
    expect(isNeverAccepted(failure("sandbox_execution_failed", "inner answer 502"))).toBe(false);
    expect(outcomeOf(failure("sandbox_execution_failed", "inner answer 502"))).toBe("doubt");
  });

  it("that the runner answered leaves out no runner, and shows no run: the program may be the cause", () => {
    expect(outcomeOf(failure("sandbox_setup_failed", "inner answer 500"))).toBe("doubt");
    expect(outcomeOf(failure("invalid_request", "inner answer 400"))).toBe("ready");
    expect(isNeverAccepted(failure("sandbox_setup_failed", "inner answer 500"))).toBe(false);
    expect(outcomeOf(new TypeError("x"))).toBe("doubt");
  });
});
