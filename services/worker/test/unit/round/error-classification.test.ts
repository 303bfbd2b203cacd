import { type ErrorCode, ServiceError } from "@svc/contracts";
import { faultOf } from "@svc/worker/round/error-classification";
import { describe, expect, it } from "vitest";

const fault = (code: ErrorCode, cause?: unknown) => faultOf(new ServiceError(code, undefined, { cause }));
const withCode = (code: string) => Object.assign(new Error("x"), { code });

describe("which faults are tried again", () => {
  it("a runner that has no slot may have one later", () => {
    expect(fault("runner_busy")).toBe("busy");
  });

  it.each(["sandbox_setup_failed", "permission_denied", "storage_unavailable"] as const)(
    "%s: the program did not start",
    (code) => {
      expect(fault(code)).toBe("away");
    },
  );

  it.each(["ECONNREFUSED", "ENOENT", "UND_ERR_CONNECT_TIMEOUT"])(
    "a runner that is away (%s) ran nothing",
    (code) => {
      expect(fault("sandbox_execution_failed", withCode(code))).toBe("absent");
    },
  );

  it.each(["starting_up", "shutting_down"] as const)("a runner that is %s will be there again", (code) => {
    expect(fault(code)).toBe("absent");
  });

  it.each(["ECONNRESET", "UND_ERR_SOCKET", "EPIPE"])(
    "a connection that broke (%s) may have run it",
    (code) => {
      expect(fault("sandbox_execution_failed", withCode(code))).toBe("broken");
    },
  );

  it("a component that failed at what it was given would fail at it again", () => {
    expect(fault("internal_error", "inner answer 500")).toBe("final");
  });

  it("an unknown fault may have run it", () => {
    expect(faultOf(new ServiceError("internal_error", undefined, { status: 502 }))).toBe("broken");
    expect(faultOf(new TypeError("x"))).toBe("broken");
    expect(faultOf(undefined)).toBe("broken");
  });

  it.each([
    "input_unavailable",
    "invalid_file_reference",
    "too_many_files",
    "deadline_exceeded",
    "unsupported_language",
  ] as const)("%s is an answer", (code) => {
    expect(fault(code, withCode("ECONNREFUSED"))).toBe("final");
  });
});
