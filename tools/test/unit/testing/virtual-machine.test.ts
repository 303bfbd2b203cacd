import { readOutcomes } from "@svc/tools/testing/virtual-machine";
import { expect, test } from "vitest";

const outcome = {
  name: "v2: tests (live)",
  passed: 3,
  failed: 1,
  seconds: 1.5,
  failures: ["limits.test.ts > time"],
  flaky: [],
};

test("the outcomes of a virtual machine are complete only with their last line", () => {
  const line = JSON.stringify(outcome);
  expect(readOutcomes(`${line}\r\nend\r\n`)).toEqual({ told: [outcome], complete: true });
  expect(readOutcomes(`${line}\r\n`)).toEqual({ told: [outcome], complete: false });
  expect(readOutcomes("")).toEqual({ told: [], complete: false });
});

test("a line that broke off is no outcome, and what was told before it counts", () => {
  expect(readOutcomes(`${JSON.stringify(outcome)}\n{"name":"v2`)).toEqual({
    told: [outcome],
    complete: false,
  });
});
