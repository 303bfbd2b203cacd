import { changeOf, comparisonTables } from "@svc/tools/bench/compare";
import type { Measured } from "@svc/tools/bench/result";
import { interval95, meanOf, quantileOf, randomFrom } from "@svc/tools/bench/statistics";
import { describe, expect, it } from "vitest";
import { around, NOTHING, resultOf } from "./support.ts";

const random = randomFrom(7);
const noisy = (value: number, n = 100) => Array.from({ length: n }, () => value * (0.8 + 0.4 * random()));
const still = [1, 1, 1] as const;
const middle = quantileOf(0.5);

describe("a change", () => {
  it("is seen when it is larger than what samples vary by", () => {
    const { ratio, isNoise } = changeOf([noisy(10), noisy(15)], [still, still], middle);
    expect(ratio).toBeCloseTo(1.5, 0);
    expect(isNoise).toBe(false);
  });

  it("is noise when samples of the same kind differ", () => {
    const outcomes = Array.from({ length: 40 }, () =>
      changeOf([noisy(10, 40), noisy(10, 40)], [still, still], middle),
    );
    const seen = outcomes.filter(({ isNoise }) => !isNoise).length;
    // About one in twenty is called a change by chance.
    expect(seen).toBeLessThan(10);
  });

  it("is what the machine's own drift does not explain", () => {
    const drift = [noisy(10), noisy(15)] as const;
    expect(changeOf([noisy(20), noisy(30)], drift, middle).isNoise).toBe(true);
    expect(changeOf([noisy(20), noisy(20)], drift, middle).isNoise).toBe(false);
  });

  it("is the same for the same samples", () => {
    const [before, after] = [noisy(10), noisy(11)];
    const once = () => changeOf([before, after], [still, still], meanOf);
    expect(once()).toEqual(once());
  });
});

describe("the interval of a number", () => {
  it("holds the number and becomes smaller with more samples", () => {
    const width = (n: number) => {
      const samples = noisy(100, n);
      const [low, high] = interval95([samples], ([drawn = []]) => middle(drawn));
      expect(low <= middle(samples) && middle(samples) <= high).toBe(true);
      return high - low;
    };
    expect(width(1000)).toBeLessThan(width(20));
  });
});

describe("two results", () => {
  const measuredAt = (factor: number): Measured => ({
    ...NOTHING,
    bare: { python: around(10) },
    scenarios: { "hello-python": around(20 * factor), pandas: around(50) },
    cpu: [
      {
        name: "hello-python",
        requests: 10,
        components: {},
        total: 12 * factor,
        parts: around(12 * factor, 5).samples,
      },
    ],
    loads: [
      {
        scenario: "hello-python",
        inFlight: 8,
        requests: 41,
        perSecond: 100 / factor,
        cpuMs: 10,
        latency: around(80 * factor),
        errors: 0,
      },
    ],
  });
  const tables = comparisonTables(
    resultOf({ warm: measuredAt(1), cold: measuredAt(1) }),
    resultOf({ warm: measuredAt(0.5) }),
  );

  it("are compared in the modes that both have", () => {
    expect(tables.map(({ rows }) => rows.length)).toEqual([2, 1, 1]);
    expect(tables.every(({ title }) => title.endsWith("warm"))).toBe(true);
  });

  it("show p50, p95 and processor time before, after, and the change", () => {
    expect(tables[0]?.rows).toEqual([
      ["hello-python", "20.0 → 10.0", "0.50 x", "21.8 → 10.9", "0.50 x", "12.0 → 6.0", "0.50 x"],
      ["pandas", "50.0 → 50.0", "1.00 x ≈", "54.5 → 54.5", "1.00 x ≈", "", ""],
    ]);
  });

  it("show each kind in between all others too, against what was there with it", () => {
    const mixedAt = (ms: number, bareMs: number): Measured => ({
      ...measuredAt(1),
      mixed: { bare: { python: around(bareMs) }, scenarios: { "hello-python": around(ms) } },
    });
    const both = comparisonTables(resultOf({ warm: mixedAt(30, 10) }), resultOf({ warm: mixedAt(30, 20) }));
    const table = both.find(({ title }) => title === "Each kind in between all others, warm");
    expect(table?.rows).toEqual([["hello-python", "30.0 → 30.0", "0.50 x", "32.7 → 32.7", "0.50 x", "", ""]]);
  });

  it("show what a session adds before and after, without what the machine did", () => {
    const sessionsAt = (added: number, bareMs: number): Measured => ({
      ...NOTHING,
      bare: { python: around(bareMs) },
      sessions: [true, false].map((changed) => ({
        state: "a file of 1 MB",
        changed,
        stored: 1_000_000,
        ms: around(10 + added * (changed ? 2 : 1)),
        withoutMs: around(10),
      })),
    });
    const tableOf = (before: Measured, after: Measured) =>
      comparisonTables(resultOf({ warm: before }), resultOf({ warm: after })).find(
        ({ title }) => title === "Sessions, warm",
      );
    expect(tableOf(sessionsAt(40, 10), sessionsAt(20, 10))?.rows).toEqual([
      ["a file of 1 MB", "all of it", "80.0 → 40.0", "0.50 x"],
      ["a file of 1 MB", "nothing", "40.0 → 20.0", "0.50 x"],
    ]);
    expect(tableOf(sessionsAt(20, 10), sessionsAt(40, 20))?.rows[0]).toEqual([
      "a file of 1 MB",
      "all of it",
      "40.0 → 80.0",
      "1.00 x ≈",
    ]);
    expect(tableOf(sessionsAt(-1, 10), sessionsAt(1, 10))?.rows[0]?.slice(2)).toEqual(["-2.0 → 2.0", ""]);
    expect(tableOf(NOTHING, sessionsAt(40, 10))).toBeUndefined();
  });

  it("do not take waiting for processor time", () => {
    const busy: Measured = {
      ...measuredAt(1),
      bare: { python: around(40) },
      bareCpuMs: { python: 9 },
      scenarios: { "hello-python": around(80) },
    };
    const quiet = { ...measuredAt(1), bareCpuMs: { python: 9 } };
    const [table] = comparisonTables(resultOf({ warm: quiet }), resultOf({ warm: busy }));
    expect(table?.rows).toEqual([
      ["hello-python", "20.0 → 80.0", "1.00 x ≈", "21.8 → 87.2", "1.00 x ≈", "12.0 → 12.0", "1.00 x ≈"],
    ]);
  });

  it("show throughput, and what the machine itself did", () => {
    expect(tables[1]?.rows).toEqual([["hello-python", "8", "100 → 200", "2.00 x"]]);
    expect(tables[2]?.rows).toEqual([["python", "10.0", "10.0", "1.00 x"]]);
  });
});
