import { DEFAULT_NAME_LIMITS, fileNameProblem, ServiceError } from "@svc/contracts";
import { thrown } from "@svc/test-kit/thrown";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressOf, attributesIn, checkNamespace, namespaceIn } from "../../src/inner-headers.ts";

const FULL = {
  "content-type": "text/csv; charset=utf-8",
  "x-original-filename": "d%C3%A4ta%2F1.csv",
  "x-svc-namespace": "acme:user:u%3A1",
};

const codeOf = (operation: () => unknown): string => thrown(ServiceError, operation)?.code ?? "none";

describe("headers of a stored object", () => {
  test("are read exactly", () => {
    expect(attributesIn({ ...FULL, "x-read-only": "TRUE" }, DEFAULT_NAME_LIMITS)).toEqual({
      contentType: "text/csv; charset=utf-8",
      filename: "däta/1.csv",
      namespace: "acme:user:u%3A1",
      readOnly: true,
    });
    expect(attributesIn(FULL, DEFAULT_NAME_LIMITS).readOnly).toBe(false);
  });

  test.each(Object.keys(FULL))("without %s are missing_headers", (name) => {
    const headers = { ...FULL, [name]: undefined };
    expect(codeOf(() => attributesIn(headers, DEFAULT_NAME_LIMITS))).toBe("missing_headers");
  });

  test.each([
    ["x-original-filename", "%", "invalid_file_name"],
    ["x-original-filename", "%ff", "invalid_file_name"],
    ["x-original-filename", "..%2Fx", "invalid_file_name"],
    ["x-original-filename", "%2Fetc%2Fpasswd", "invalid_file_name"],
    ["x-original-filename", "a%00b", "invalid_file_name"],
    ["x-original-filename", "", "invalid_file_name"],
    ["content-type", " ", "invalid_request"],
    ["content-type", "a/b\u00e9", "invalid_request"],
    ["content-type", `a/${"b".repeat(255)}`, "invalid_request"],
    ["x-svc-namespace", "", "invalid_request"],
    ["x-svc-namespace", "acme", "invalid_request"],
    ["x-svc-namespace", "acme:user:%zz", "invalid_request"],
    ["x-svc-namespace", "acme:user:a b", "invalid_request"],
  ])("with %s %j are %s", (name, value, code) => {
    expect(codeOf(() => attributesIn({ ...FULL, [name]: value }, DEFAULT_NAME_LIMITS))).toBe(code);
  });

  test("every allowed name survives the way through the header", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }), (name) => {
        fc.pre(fileNameProblem(name) === undefined);
        const headers = { ...FULL, "x-original-filename": encodeURIComponent(name) };
        expect(attributesIn(headers, DEFAULT_NAME_LIMITS).filename).toBe(name);
      }),
    );
  });
});

describe("addresses", () => {
  test.each(["", "short", "a".repeat(22), `${"a".repeat(20)}/`, `${"a".repeat(20)}.`, `${"a".repeat(20)}é`])(
    "%j is not an id",
    (id) => {
      expect(codeOf(() => addressOf({ sid: id, fid: "b".repeat(21) }))).toBe("invalid_id");
      expect(codeOf(() => addressOf({ sid: "b".repeat(21), fid: id }))).toBe("invalid_id");
    },
  );

  test("no namespace is no namespace", () => {
    expect(namespaceIn({})).toBeUndefined();
    expect(checkNamespace("t:skill:s:v:1")).toBe("t:skill:s:v:1");
  });
});
