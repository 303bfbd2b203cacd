import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ADVICE, ERRORS, errorBody, isErrorCode, ServiceError } from "../../src/index.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const TABLES = /contracts\/src\/(errors|error-advice)\.ts$/;
/** Of all components, but for the tables themselves. */
const sources = () =>
  globSync("{packages,services}/*/src/**/*.ts", { cwd: ROOT })
    .filter((file) => !TABLES.test(file) && !file.includes("test-kit"))
    .map((file) => join(ROOT, file));

const KIB = 1024;
const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 5000 }),
  fc.constantFrom("\0".repeat(5000), "\ud83d".repeat(5000), "🎉".repeat(3000), "\u2028".repeat(5000)),
);
const details = fc.array(fc.record({ path: anyText, problem: anyText }), { maxLength: 300 });

describe("the error table", () => {
  it("has a client or server error status and a whole sentence in every row", () => {
    for (const [code, { status, message }] of Object.entries(ERRORS)) {
      expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(600);
      expect(message).toMatch(/^[A-Z].*\.$/);
    }
  });

  it("has no code that nothing gives", () => {
    const given = sources().map((file) => readFileSync(file, "utf8"));
    const never = Object.keys(ERRORS).filter((code) => !given.some((text) => text.includes(`"${code}"`)));
    expect(never).toEqual([]);
  });

  it("says nothing of hosts, ports, paths or stacks", () => {
    for (const { message } of Object.values(ERRORS)) {
      expect(message).not.toMatch(/localhost|127\.0|:\d{2,5}\b|\/mnt|\/tmp|redis|bullmq|node_modules| at /i);
    }
  });

  it.each([
    ["invalid_json", 400],
    ["unauthorized", 401],
    ["file_reference_denied", 403],
    ["not_found", 404],
    ["method_not_allowed", 405],
    ["upload_timeout", 408],
    ["continuation_conflict", 409],
    ["length_required", 411],
    ["request_too_large", 413],
    ["file_too_large", 413],
    ["range_not_satisfiable", 416],
    ["idempotency_key_reused", 422],
    ["rate_limited", 429],
    ["internal_error", 500],
    ["input_unavailable", 502],
    ["sandbox_execution_failed", 502],
    ["queue_saturated", 503],
    ["sandbox_setup_failed", 503],
    ["execution_timeout", 504],
  ] as const)("gives %s the status %i", (code, status) => {
    expect(new ServiceError(code).status).toBe(status);
  });

  it("says of every code what to do, and only of few that the identical request is safe", () => {
    expect(Object.keys(ADVICE).sort()).toEqual(Object.keys(ERRORS).sort());
    for (const { fix } of Object.values(ADVICE)) expect(fix).toMatch(/^[A-Z`].*[^.]$/);
    const same = Object.entries(ADVICE).filter(([, { repeat }]) => repeat === "same");
    expect(same.map(([code]) => code).sort()).toEqual([
      "ledger_conflict",
      "permission_denied",
      "queue_saturated",
      "sandbox_setup_failed",
    ]);
    for (const [code] of same) expect(ERRORS[code as keyof typeof ERRORS].status).toBe(503);
  });

  it("an input that is gone stays gone; storage that is away comes back", () => {
    expect(ADVICE.input_unavailable.repeat).toBe("no");
    expect(ADVICE.storage_unavailable.repeat).toBe("yes");
  });

  it("knows its codes and nothing else", () => {
    for (const code of Object.keys(ERRORS)) expect(isErrorCode(code)).toBe(true);
    for (const other of ["toString", "__proto__", "constructor", "", "NOT_FOUND", undefined, 404, null]) {
      expect(isErrorCode(other)).toBe(false);
    }
  });
});

describe("errorBody", () => {
  it("never passes 16 KiB and is always well-formed JSON", () => {
    fc.assert(
      fc.property(anyText, details, (message, wrong) => {
        const error = new ServiceError("invalid_request", message, { details: wrong });
        const text = JSON.stringify(errorBody(error, "r".repeat(128)));
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16 * KIB);
        expect(text).not.toMatch(/\\ud[89a-f]/i);
        expect(JSON.parse(text).error).toBe("invalid_request");
      }),
      { numRuns: 50 },
    );
  });

  it("keeps short details whole and in order, and the first hundred of many", () => {
    const wrong = Array.from({ length: 150 }, (_, at) => ({
      path: `files[${at}].name`,
      problem: "is wrong",
    }));
    const body = errorBody(new ServiceError("invalid_file_reference", undefined, { details: wrong }), "id");
    expect(body.details).toEqual(wrong.slice(0, 100));
  });

  it("has exactly the documented fields", () => {
    expect(errorBody(new ServiceError("not_found"), "id-1")).toEqual({
      error: "not_found",
      message: "There is no such route.",
      request_id: "id-1",
    });
  });

  it("adds further fields but lets none replace the code", () => {
    const extra = { reason: "expired", error: "forged", request_id: "forged" };
    const body = errorBody(new ServiceError("egress_grant_refused", undefined, { extra }), "id-1");
    expect(body).toMatchObject({ error: "egress_grant_refused", reason: "expired", request_id: "id-1" });
  });

  it("shows nothing of the cause", () => {
    const error = new ServiceError("internal_error", undefined, { cause: new Error("redis at 10.0.0.7") });
    expect(JSON.stringify(errorBody(error, "id"))).not.toContain("10.0.0.7");
  });
});
