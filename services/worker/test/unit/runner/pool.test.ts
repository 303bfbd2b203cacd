/** Which runner gets a run, as a pool of any runners with any history decides it. */
import { type Outcome, RunnerPool } from "@svc/worker/runner/pool";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const PROBE_EVERY_MS = 5000;
const NONE: ReadonlySet<string> = new Set();
const OUTCOMES = ["served", "ready", "busy", "failed", "silent"] as const satisfies Outcome[];

function poolOf(...addresses: string[]): RunnerPool {
  const pool = new RunnerPool(PROBE_EVERY_MS);
  pool.setMembers(addresses, 0);
  return pool;
}

const history = fc.array(
  fc.record({
    at: fc.constantFrom("a", "b", "c"),
    outcome: fc.constantFrom(...OUTCOMES),
    afterMs: fc.nat(20_000),
  }),
  { maxLength: 40 },
);

describe("choice", () => {
  it("is a ready runner wherever there is one, and some runner always", () => {
    fc.assert(
      fc.property(history, (reports) => {
        const pool = poolOf("a", "b", "c");
        const last = new Map<string, Outcome>();
        let now = 0;
        for (const { at, outcome, afterMs } of reports) {
          now += afterMs;
          pool.report(at, outcome, now);
          last.set(at, outcome);
        }
        const isReady = (address: string) => ["served", "ready"].includes(last.get(address) ?? "ready");
        const chosen = pool.choose(NONE) as string;
        expect(["a", "b", "c"]).toContain(chosen);
        if (["a", "b", "c"].some(isReady)) expect(isReady(chosen)).toBe(true);
        expect(pool.counts().ready).toBe(["a", "b", "c"].filter(isReady).length);
      }),
    );
  });

  it("never is one that was tried, and ends when all were", () => {
    fc.assert(
      fc.property(history, (reports) => {
        const pool = poolOf("a", "b", "c");
        for (const { at, outcome } of reports) pool.report(at, outcome, 0);
        const tried = new Set<string>();
        for (let times = 0; times < 3; times++) tried.add(pool.choose(tried) as string);
        expect([...tried].sort()).toEqual(["a", "b", "c"]);
        expect(pool.choose(tried)).toBeUndefined();
      }),
    );
  });

  it("gives each runner as many of the runs at the same time as its slots are worth", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 20 }), (slotsA, slotsB) => {
        const pool = poolOf("a", "b");
        pool.report("a", "ready", 0, slotsA);
        pool.report("b", "ready", 0, slotsB);
        const runs = { a: 0, b: 0 };
        for (let times = 0; times < slotsA + slotsB; times++) {
          const chosen = pool.choose(NONE) as "a" | "b";
          pool.began(chosen);
          runs[chosen]++;
        }
        expect(runs).toEqual({ a: slotsA, b: slotsB });
      }),
    );
  });

  it("alternates between idle runners", () => {
    const pool = poolOf("a", "b");
    expect([1, 2, 3, 4].map(() => pool.choose(NONE))).toEqual(["a", "b", "a", "b"]);
  });

  it("takes one with a queue before one that is away", () => {
    const pool = poolOf("a", "b");
    pool.report("a", "failed", 0);
    pool.report("b", "busy", 0);
    expect(pool.choose(NONE)).toBe("b");
  });
});

describe("a runner that was left out", () => {
  /** The pauses before its probes, none of which finds it ready. */
  function pauses(outcome: "failed" | "busy", times: number): number[] {
    const pool = poolOf("a");
    pool.takeDue(0);
    let now = 0;
    return Array.from({ length: times }, () => {
      pool.report("a", outcome, now);
      const from = now;
      while (pool.takeDue(now).length === 0) now += 50;
      return now - from;
    });
  }

  it("is probed after pauses that double, up to a bound", () => {
    expect(pauses("failed", 9)).toEqual([250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
    expect(pauses("busy", 5)).toEqual([250, 500, 1000, 2000, 2000]);
  });

  it("comes back when it is ready, and its pause is short again only after a run", () => {
    const pool = poolOf("a", "b");
    pool.takeDue(0);
    for (let times = 0; times < 3; times++) {
      expect(pool.report("a", "failed", 0)).toBe("away");
      expect(pool.report("a", "ready", 0)).toBe("ready");
    }
    pool.report("a", "failed", 0);
    expect(pool.takeDue(1999)).toEqual([]);
    expect(pool.takeDue(2000)).toEqual(["a"]);
    pool.report("a", "served", 2000);
    pool.report("a", "failed", 2000);
    expect(pool.takeDue(2250)).toEqual(["a"]);
  });

  it("is probed once at a time", () => {
    const pool = poolOf("a");
    expect(pool.takeDue(0)).toEqual(["a"]);
    expect(pool.takeDue(100_000)).toEqual([]);
    pool.report("a", "ready", 100_000);
    expect(pool.takeDue(100_000 + PROBE_EVERY_MS)).toEqual(["a"]);
  });

  it("is cut off when nothing came back for long, but not while it refuses", () => {
    const pool = poolOf("a", "b");
    for (const now of [1000, 9000, 15_999]) {
      pool.report("a", "silent", now);
      pool.report("b", now === 9000 ? "failed" : "silent", now);
      expect(pool.takeCutOff(now)).toEqual([]);
    }
    expect(pool.takeCutOff(16_000)).toEqual(["a"]);
    expect(pool.takeCutOff(16_001)).toEqual([]);
  });
});

describe("members", () => {
  it("that stay keep what is known of them; those that leave are forgotten", () => {
    const pool = poolOf("a", "b");
    pool.report("a", "failed", 0);
    pool.setMembers(["a", "c"], 0);
    expect(pool.counts()).toEqual({ ready: 1, busy: 0, away: 1 });
    expect(pool.choose(NONE)).toBe("c");
    expect(pool.has("b")).toBe(false);
    pool.ended("b");
    expect(pool.report("b", "failed", 0)).toBeUndefined();
  });

  it("of a pool that probes no ready runner are probed only when they are left out or doubted", () => {
    const pool = new RunnerPool(undefined);
    pool.setMembers(["a"], 0);
    pool.report("a", "served", 0);
    expect(pool.takeDue(10 ** 9)).toEqual([]);
    pool.doubt("a", 10 ** 9);
    expect(pool.takeDue(10 ** 9)).toEqual(["a"]);
    pool.report("a", "failed", 10 ** 9);
    expect(pool.choose(NONE)).toBe("a");
    expect(pool.takeDue(10 ** 9 + 250)).toEqual(["a"]);
  });

  it("are believed to have no more slots than a runner may have", () => {
    const pool = poolOf("a", "b");
    pool.report("a", "ready", 0, 10 ** 9);
    pool.report("b", "ready", 0, 512);
    expect([1, 2].map(() => pool.choose(NONE))).toEqual(["a", "b"]);
  });
});
