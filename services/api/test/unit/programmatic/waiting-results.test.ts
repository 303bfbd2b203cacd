import { WaitingResults } from "@svc/api/programmatic/waiting-results";
import { expect, test } from "vitest";

const LEAST = 65_536;

test("a caller holds so many bytes at once, others' do not count, and what is given back may be held again", () => {
  const waiting = new WaitingResults(3 * LEAST);
  const leave = waiting.hold("a", LEAST);
  waiting.hold("a", 0);
  expect(() => waiting.hold("a", 0)).toThrow("safe to repeat");
  waiting.hold("b", 2 * LEAST);
  leave();
  waiting.hold("a", LEAST);
  expect(() => waiting.hold("a", 0)).toThrow("safe to repeat");
});

test("results that are larger than all may wait alone", () => {
  const waiting = new WaitingResults(1);
  const leave = waiting.hold("a", 10 * LEAST);
  expect(() => waiting.hold("a", 0)).toThrow("safe to repeat");
  leave();
  waiting.hold("a", 10 * LEAST);
});
