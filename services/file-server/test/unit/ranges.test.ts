import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseRange } from "../../src/ranges.ts";

describe("the Range header", () => {
  test.each([
    ["bytes=0-0", { first: 0, last: 0 }],
    ["bytes=2-4", { first: 2, last: 4 }],
    ["bytes=2-", { first: 2, last: 9 }],
    ["bytes=-3", { first: 7, last: 9 }],
    ["bytes=-30", { first: 0, last: 9 }],
    ["bytes=5-500", { first: 5, last: 9 }],
    ["BYTES= 1 - 2 ", "everything"],
    ["Bytes= 1-2 ", { first: 1, last: 2 }],
    ["bytes=10-", "unsatisfiable"],
    ["bytes=-0", "unsatisfiable"],
    [`bytes=${"9".repeat(500)}-`, "unsatisfiable"],
    ["bytes=0-1,3-4", "everything"],
    ["bytes=0-1, 90-99", "everything"],
    ["bytes=4-2", "everything"],
    ["bytes=-", "everything"],
    ["bytes=", "everything"],
    ["bytes=a-b", "everything"],
    ["bytes=1.5-2", "everything"],
    ["bytes=--1", "everything"],
    ["items=0-1", "everything"],
    ["", "everything"],
    [undefined, "everything"],
  ])("%s of ten bytes is %j", (header, answer) => {
    expect(parseRange(header, 10)).toEqual(answer);
  });

  test.each(["bytes=0-", "bytes=0-0", "bytes=-1"])("%s of an empty file cannot be satisfied", (header) => {
    expect(parseRange(header, 0)).toBe("unsatisfiable");
  });

  test("whatever the header, a served range lies inside the file", () => {
    const number = fc.oneof(fc.nat(40).map(String), fc.constant(""), fc.string({ maxLength: 4 }));
    const headers = fc.oneof(
      fc.string(),
      fc.tuple(number, number).map(([first, last]) => `bytes=${first}-${last}`),
    );
    fc.assert(
      fc.property(headers, fc.nat(30), (header, size) => {
        const range = parseRange(header, size);
        if (typeof range === "string") return;
        expect(range.first).toBeGreaterThanOrEqual(0);
        expect(range.last).toBeGreaterThanOrEqual(range.first);
        expect(range.last).toBeLessThan(size);
      }),
    );
  });
});
