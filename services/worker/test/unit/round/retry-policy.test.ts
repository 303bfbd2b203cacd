import type { Fault } from "@svc/worker/round/error-classification";
import { RetryPolicy } from "@svc/worker/round/retry-policy";
import fc from "fast-check";
import { expect, it } from "vitest";

it("a final fault ends at once", () => {
  expect(new RetryPolicy(0).pauseAfter("final", 0)).toBeUndefined();
});

it("a broken run is made once more, however late it broke", () => {
  const policy = new RetryPolicy(0);
  expect(policy.pauseAfter("broken", 250_000)).toBe(100);
  expect(policy.pauseAfter("broken", 250_200)).toBeUndefined();
});

it("what is away is asked for less and less often, for 15 seconds", () => {
  const policy = new RetryPolicy(0);
  const pauses: number[] = [];
  let now = 1000;
  for (
    let pause = policy.pauseAfter("away", now);
    pause !== undefined;
    pause = policy.pauseAfter("away", now)
  ) {
    pauses.push(pause);
    now += pause;
  }
  expect(pauses.slice(0, 5)).toEqual([100, 200, 400, 800, 1000]);
  expect(now - 1000).toBeGreaterThanOrEqual(15_000);
  expect(now - 1000).toBeLessThan(16_001);
});

it.each(["busy", "absent"] as const)(
  "a slot, or a runner, is waited for until the time that was set, whatever is away meanwhile: %s",
  (fault) => {
    const policy = new RetryPolicy(60_000);
    expect(policy.pauseAfter(fault, 30_000)).toBe(100);
    expect(policy.pauseAfter("away", 30_200)).toBe(200);
    expect(policy.pauseAfter(fault, 50_000)).toBe(400);
    expect(policy.pauseAfter("away", 59_999)).toBe(800);
    expect(policy.pauseAfter(fault, 60_000)).toBeUndefined();
    expect(policy.hasRepeated).toBe(false);
  },
);

it("a run that broke waits for a slot for 15 seconds at least", () => {
  const policy = new RetryPolicy(60_000);
  expect(policy.pauseAfter("broken", 59_000)).toBe(100);
  expect(policy.hasRepeated).toBe(true);
  expect(policy.pauseAfter("busy", 73_999)).toBe(100);
  expect(policy.pauseAfter("busy", 74_000)).toBeUndefined();
});

it("after a long run that broke, what is away is waited for from then on", () => {
  const policy = new RetryPolicy(0);
  expect(policy.pauseAfter("away", 0)).toBe(100);
  expect(policy.pauseAfter("broken", 60_000)).toBe(100);
  expect(policy.pauseAfter("away", 60_100)).toBe(100);
  expect(policy.pauseAfter("away", 75_099)).toBe(200);
  expect(policy.pauseAfter("away", 75_100)).toBeUndefined();
});

it("every series of faults comes to an end", () => {
  const faults = fc.infiniteStream(fc.constantFrom<Fault>("away", "busy", "absent", "broken", "final"));
  fc.assert(
    fc.property(faults, (series) => {
      const policy = new RetryPolicy(0);
      let now = 0;
      for (const fault of series) {
        const pause = policy.pauseAfter(fault, now);
        if (pause === undefined) break;
        now += pause;
      }
      expect(now).toBeLessThan(40_000);
    }),
  );
});
