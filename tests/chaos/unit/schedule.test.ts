import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { described, type Fault, scheduleOf } from "../schedule.ts";

const SEEDS = Array.from({ length: 300 }, (_, seed) => seed);

describe("a schedule", () => {
  test("follows from its seed and its seconds alone", () => {
    expect(scheduleOf(7, 30)).toEqual(scheduleOf(7, 30));
    expect(scheduleOf(7, 30)).not.toEqual(scheduleOf(8, 30));
  });

  test("lies within its time and in its order", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 120 }), (seed, seconds) => {
        const faults = scheduleOf(seed, seconds);
        for (const { atMs, forMs } of faults) {
          expect(atMs).toBeGreaterThanOrEqual(500);
          expect(atMs + forMs).toBeLessThanOrEqual(seconds * 1000);
        }
        expect(faults.map(({ atMs }) => atMs)).toEqual(
          faults.map(({ atMs }) => atMs).toSorted((a, b) => a - b),
        );
      }),
    );
  });

  test("has every kind of fault in some seed, and Redis loses what it holds in few", () => {
    const kinds = new Set(SEEDS.flatMap((seed) => scheduleOf(seed, 30).map(({ what }) => what)));
    expect([...kinds].sort()).toEqual(["cut", "empty", "fill", "hang", "kill", "slow", "step", "stop"]);
    const emptied = SEEDS.filter((seed) => scheduleOf(seed, 30).some(({ what }) => what === "empty"));
    expect(emptied.length).toBeGreaterThan(20);
    expect(emptied.length).toBeLessThan(90);
  });

  test("steps one clock at a time, there and back, by 2 to 60 s", () => {
    const steps = SEEDS.map((seed) => scheduleOf(seed, 30).filter(({ what }) => what === "step"));
    expect(steps.filter((some) => some.length > 0).length).toBeGreaterThan(100);
    for (const some of steps)
      for (const [at, fault] of some.entries()) {
        const sizeMs = fault.what === "step" ? Math.abs(fault.byMs) : 0;
        expect(sizeMs).toBeGreaterThanOrEqual(2000);
        expect(sizeMs).toBeLessThanOrEqual(60_000);
        expect(fault.atMs + fault.forMs).toBeLessThanOrEqual(some[at + 1]?.atMs ?? 30_000);
      }
    const ways = new Set(steps.flat().map((fault) => fault.what === "step" && fault.byMs > 0));
    expect([...ways].sort()).toEqual([false, true]);
  });

  test("is told in words", () => {
    const faults: Fault[] = [
      { atMs: 1200, forMs: 0, what: "kill", where: "runner" },
      { atMs: 2000, forMs: 1500, what: "slow", where: "api>redis", byMs: 40 },
      { atMs: 3000, forMs: 1000, what: "step", where: "worker", byMs: -12_300 },
    ];
    expect(faults.map(described)).toEqual([
      "at 1.2 s: kill runner",
      "at 2.0 s: slow api>redis by 40 ms for 1.5 s",
      "at 3.0 s: step worker by -12.3 s for 1.0 s",
    ]);
  });
});
