import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { readReport } from "@svc/tools/testing/suites";
import { summary } from "@svc/tools/testing/summary";
import { expect, test } from "vitest";

const at = (fullName: string, status: string, ...failureMessages: string[]) => ({
  fullName,
  status,
  failureMessages,
});
const REPORT = {
  numPassedTests: 2,
  numFailedTests: 1,
  testResults: [
    {
      name: join(ROOT, "a.test.ts"),
      status: "failed",
      message: "",
      assertionResults: [
        at("is good", "passed"),
        at("fails once", "passed", "Error: too late\nat a.test.ts:1"),
        at("fails twice", "failed", "Error: first", "Error: second"),
      ],
    },
    { name: join(ROOT, "b.test.ts"), status: "failed", message: "no such import", assertionResults: [] },
  ],
};

test("a report tells of tests that failed, of files that failed, and of tests that passed when repeated", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-report-"));
  try {
    const path = join(folder, "report.json");
    writeFileSync(path, JSON.stringify(REPORT));
    expect(readReport(path)).toEqual({
      passed: 2,
      failed: 1,
      failures: ["a.test.ts > fails twice\n  Error: first\n  Error: second", "b.test.ts\n  no such import"],
      flaky: ["a.test.ts > fails once\n  Error: too late\n  at a.test.ts:1"],
    });
    expect(readReport(join(folder, "none.json"))).toEqual({ passed: 0, failed: 0, failures: [], flaky: [] });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

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
