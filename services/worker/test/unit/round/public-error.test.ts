import { ERRORS, type ErrorCode, ServiceError } from "@svc/contracts";
import { failureOf } from "@svc/worker/round/public-error";
import { describe, expect, it } from "vitest";

const never = new AbortController().signal;
const of = (error: unknown) => failureOf(error, never, false).error;

describe("failureOf", () => {
  it.each([
    ["deadline_exceeded", "execution_timeout", 504],
    ["runner_busy", "queue_saturated", 503],
    ["queue_saturated", "queue_saturated", 503],
    ["starting_up", "sandbox_setup_failed", 503],
    ["shutting_down", "sandbox_setup_failed", 503],
    ["upstream_unavailable", "sandbox_setup_failed", 503],
    ["upstream_timeout", "sandbox_setup_failed", 503],
    ["ledger_conflict", "sandbox_setup_failed", 503],
    ["manifest_missing", "sandbox_setup_failed", 503],
    ["manifest_malformed", "sandbox_setup_failed", 503],
    ["manifest_key_missing", "sandbox_setup_failed", 503],
    ["manifest_refused", "sandbox_setup_failed", 503],
    ["internal_error", "internal_error", 500],
    ["sandbox_execution_failed", "sandbox_execution_failed", 502],
    ["unauthorized", "sandbox_execution_failed", 502],
    ["egress_grant_refused", "sandbox_execution_failed", 502],
    ["not_found", "sandbox_execution_failed", 502],
    ["store_unavailable", "store_unavailable", 503],
    ["storage_unavailable", "storage_unavailable", 503],
    ["input_unavailable", "input_unavailable", 502],
    ["unsupported_version", "unsupported_version", 400],
    ["execution_not_found", "execution_not_found", 404],
    ["execution_expired", "execution_expired", 400],
  ] as const)("%s is told as %s with status %i", (code, told, status) => {
    expect(of(new ServiceError(code))).toMatchObject({ code: told, status });
  });

  it("what no component of ours has answered is a broken run", () => {
    const proxy = new ServiceError("internal_error", undefined, { status: 502 });
    expect(of(proxy)).toMatchObject({ code: "sandbox_execution_failed", status: 502 });
  });

  it("a runner's own status never replaces that of a broken run", () => {
    expect(of(new ServiceError("sandbox_execution_failed", undefined, { status: 500 })).status).toBe(502);
  });

  it("no code leads to a status that clients of the exec routes read as something else", () => {
    for (const code of Object.keys(ERRORS) as ErrorCode[]) {
      // Said to the API, which runs the program again.
      if (code === "execution_not_found") continue;
      expect([404, 409, 401, 429]).not.toContain(of(new ServiceError(code)).status);
    }
  });

  it("what is no error of ours is a broken run, and nothing of it is told", () => {
    for (const error of [new Error("redis://secret"), "redis://secret", undefined, null]) {
      const told = of(error);
      expect(told).toMatchObject({ code: "sandbox_execution_failed", status: 502 });
      expect(JSON.stringify(told)).not.toContain("secret");
    }
  });

  it("a cancellation goes before everything, then the deadline", () => {
    const cancelled = AbortSignal.abort(new ServiceError("execution_cancelled"));
    const error = new ServiceError("input_unavailable");
    expect(failureOf(error, cancelled, true).error).toMatchObject({
      code: "execution_cancelled",
      status: 409,
    });
    expect(failureOf(error, never, true).error).toMatchObject({ code: "execution_timeout", status: 504 });
  });

  it("names the input in the caller's own indices", () => {
    const details = [
      { path: "files[3].name", problem: '"a.csv" is missing or damaged' },
      { path: "files[0].name", problem: "is wrong" },
      { path: "args", problem: "are too long" },
    ];
    expect(of(new ServiceError("input_unavailable", "inner words", { details }))).toEqual({
      code: "input_unavailable",
      status: 502,
      message: 'files[2].name: "a.csv" is missing or damaged.',
      details: [
        { path: "files[2].name", problem: '"a.csv" is missing or damaged' },
        { path: "code", problem: "is wrong" },
        { path: "args", problem: "are too long" },
      ],
    });
  });
});
