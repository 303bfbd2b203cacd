import {
  bodiesAreOpen,
  isOver,
  seatsAreTaken,
  secondsLeft,
  tooManyJobs,
  tooMuchStored,
  type Window,
  waitsAreOpen,
  windowHeaders,
  windowIsFull,
} from "@svc/api/limits/window";
import { errorBody } from "@svc/contracts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const window = (change: Partial<Window> = {}): Window => ({
  requests: 20,
  windowMs: 30_000,
  count: 1,
  leftMs: 30_000,
  ...change,
});
const anyWindow = fc.record({
  requests: fc.integer({ min: 1, max: 1_000_000 }),
  windowMs: fc.integer({ min: 1, max: 86_400_000 }),
  count: fc.integer({ min: 1, max: 2 ** 40 }),
  leftMs: fc.integer({ min: 0, max: 86_400_000 }),
});

describe("a window", () => {
  it.each([
    [1, false, "19"],
    [19, false, "1"],
    [20, false, "0"],
    [21, true, "0"],
    [1000, true, "0"],
  ])("at request %i of 20: over %s, remaining %s", (count, over, remaining) => {
    expect(isOver(window({ count }))).toBe(over);
    expect(windowHeaders(window({ count }))["ratelimit-remaining"]).toBe(remaining);
  });

  it.each([
    [30_000, 30],
    [29_001, 30],
    [29_000, 29],
    [1001, 2],
    [1, 1],
    [0, 1],
  ])("with %i ms left is surely over in %i s", (leftMs, seconds) => {
    expect(secondsLeft(window({ leftMs }))).toBe(seconds);
  });

  it("tells its size in whole seconds", () => {
    expect(windowHeaders(window())["ratelimit-policy"]).toBe("20;w=30");
    expect(windowHeaders(window({ windowMs: 1500 }))["ratelimit-policy"]).toBe("20;w=2");
    expect(windowHeaders(window({ windowMs: 1 }))["ratelimit-policy"]).toBe("20;w=1");
  });

  it("has four headers of plain integers that agree with each other", () => {
    fc.assert(
      fc.property(anyWindow, (some) => {
        const headers = windowHeaders(some);
        expect(Object.keys(headers).sort()).toEqual([
          "ratelimit-limit",
          "ratelimit-policy",
          "ratelimit-remaining",
          "ratelimit-reset",
        ]);
        const { "ratelimit-policy": policy, ...numbers } = headers;
        for (const value of Object.values(numbers)) expect(value).toMatch(/^(0|[1-9]\d*)$/);
        expect(policy).toMatch(new RegExp(`^${some.requests};w=[1-9]\\d*$`));
        const remaining = Number(headers["ratelimit-remaining"]);
        expect(remaining).toBeLessThan(some.requests);
        if (isOver(some)) expect(remaining).toBe(0);
        const reset = Number(headers["ratelimit-reset"]) * 1000;
        expect(reset).toBeGreaterThanOrEqual(some.leftMs);
        expect(reset - some.leftMs).toBeLessThanOrEqual(1000);
      }),
    );
  });
});

describe("a refusal", () => {
  it.each([
    [windowIsFull("uploads", window({ count: 21, leftMs: 4200 })), 5, /uploads: 20 .* 30 s.* 5 s/],
    [seatsAreTaken(6), 1, /at once: 6 /],
    [bodiesAreOpen(), 1, /bodies at once/],
    [waitsAreOpen(32), 1, /at once: 32 /],
    [tooManyJobs(100), 5, /jobs: 100 /],
    [tooMuchStored(250), 5, /: 250 bytes/],
  ])("says when to come back, three times the same: %s", (error, seconds, message) => {
    expect(error).toMatchObject({
      code: "rate_limited",
      status: 429,
      headers: { "retry-after": `${seconds}` },
    });
    expect(errorBody(error, "the-request")).toEqual({
      error: "rate_limited",
      message: expect.stringMatching(message),
      request_id: "the-request",
      retry_after_seconds: seconds,
      retry_after: seconds,
    });
  });
});
