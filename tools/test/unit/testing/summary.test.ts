import { summary } from "@svc/tools/testing/summary";
import { expect, test } from "vitest";

test("the last line counts, and names flaky tests only where there are some", () => {
  const outcome = { name: "tests (live)", passed: 2, failed: 0, seconds: 1, failures: [], flaky: [] };
  expect(summary([outcome, outcome])).toMatch(/\n4 passed, 0 failed$/);
  const repeated = summary([{ ...outcome, flaky: ["a.test.ts > fails once"] }]);
  expect(repeated).toMatch(/when repeated\):\n\na\.test\.ts > fails once\n/);
  expect(repeated).toMatch(/\n2 passed, 0 failed, 1 flaky$/);
});

test("the names of failed and flaky tests stand before the counts, once each and without what they said", () => {
  const outcome = {
    name: "tests (escape, warm)",
    passed: 2,
    failed: 2,
    seconds: 1,
    failures: [
      "a.test.ts > fails\n  Error: first\n  at a.test.ts:1",
      "types (tsc): exit code 1, see its output above",
    ],
    flaky: ["b.test.ts > fails once\n  Error: too late"],
  };
  const lines = summary([outcome, { ...outcome, flaky: [] }]).split("\n");
  expect(lines.slice(lines.findLastIndex((line) => line.includes("tests (escape, warm)")) + 1)).toEqual([
    "",
    "Failed:",
    "  a.test.ts > fails",
    "  types (tsc): exit code 1, see its output above",
    "",
    "Flaky:",
    "  b.test.ts > fails once",
    "",
    "4 passed, 4 failed, 1 flaky",
  ]);
});
