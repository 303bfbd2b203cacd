import { TASK_STATES } from "@svc/jail-client";
import {
  batchIsComplete,
  CATCH_UP_MS,
  nextCheckMs,
  type Observation,
} from "@svc/runner/programmatic/quiescence";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const TIMES = { settleMs: 15, settleMaxMs: 1000 };
const moment = (change: Partial<Observation>): Observation => ({
  state: "running",
  nowMs: 10_000,
  firstCallMs: 9999,
  activityMs: 9999,
  arriving: false,
  unused: 0,
  ...change,
});
const complete = (change: Partial<Observation>) => batchIsComplete(moment(change), TIMES);
const momentArbitrary = fc
  .record({
    state: fc.constantFrom(...TASK_STATES),
    firstCallMs: fc.integer({ min: 0, max: 30_000 }),
    quiet: fc.integer({ min: 0, max: 30_000 }),
    arriving: fc.boolean(),
    unused: fc.integer({ min: 0, max: 2 }),
  })
  .map(({ quiet, ...rest }): Observation => ({ ...rest, nowMs: 30_000, activityMs: 30_000 - quiet }));

describe("a batch", () => {
  it("is complete at once when only an answer can move the program, and no call is on its way", () => {
    expect(complete({ state: "blocked" })).toBe(true);
    expect(complete({ state: "blocked", arriving: true })).toBe(false);
    expect(complete({ state: "blocked", unused: 3 })).toBe(true);
  });

  it("is complete when all tasks wait and no call came for a while", () => {
    expect(complete({ state: "waiting", activityMs: 9986 })).toBe(false);
    expect(complete({ state: "waiting", activityMs: 9985 })).toBe(true);
    expect(complete({ state: "running", activityMs: 9000, firstCallMs: 9001 })).toBe(false);
  });

  it("is complete some time after its first call, whatever the program does", () => {
    expect(complete({ firstCallMs: 9001 })).toBe(false);
    expect(complete({ firstCallMs: 9000 })).toBe(true);
    expect(complete({ firstCallMs: 9000, arriving: true })).toBe(true);
  });

  it("of a program that repeats itself waits for recorded calls while it may still make them", () => {
    expect(complete({ firstCallMs: 0, unused: 1 })).toBe(false);
    expect(complete({ state: "waiting", activityMs: 9000, unused: 1 })).toBe(false);
    expect(complete({ state: "waiting", activityMs: 10_000 - CATCH_UP_MS, unused: 1 })).toBe(true);
  });

  it("that is complete stays so while nothing happens", () => {
    fc.assert(
      fc.property(momentArbitrary, fc.nat({ max: 60_000 }), (now, laterMs) => {
        if (batchIsComplete(now, TIMES)) {
          expect(batchIsComplete({ ...now, nowMs: now.nowMs + laterMs }, TIMES)).toBe(true);
        }
      }),
    );
  });

  it("is looked at again soon, and ever more seldom", () => {
    fc.assert(
      fc.property(fc.nat({ max: 5000 }), fc.nat({ max: 5000 }), (one, other) => {
        const [less, more] = [Math.min(one, other), Math.max(one, other)].map((quiet) =>
          nextCheckMs({ nowMs: quiet, activityMs: 0 }),
        ) as [number, number];
        expect(less).toBeGreaterThanOrEqual(1);
        expect(more).toBeLessThanOrEqual(10);
        expect(less).toBeLessThanOrEqual(more);
      }),
    );
  });
});
