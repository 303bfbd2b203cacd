import { chaosSettings, seedsOf } from "@svc/tools/testing/chaos";
import { describe, expect, test } from "vitest";

const NOTHING = { seed: undefined, seconds: undefined, isFixed: false, isCi: false };

describe("the seeds of chaos", () => {
  test("are those that were asked for", () => {
    const settings = chaosSettings({ ...NOTHING, seed: "3-5", seconds: "7" });
    expect(settings).toEqual({ CHAOS_SEEDS: "3-5", CHAOS_SECONDS: "7" });
    expect(seedsOf(settings.CHAOS_SEEDS)).toEqual([3, 4, 5]);
  });

  test("are five fixed ones beside other suites, for a shorter time in CI", () => {
    const all = chaosSettings({ ...NOTHING, isFixed: true });
    const ci = chaosSettings({ ...NOTHING, isFixed: true, isCi: true });
    expect(seedsOf(all.CHAOS_SEEDS)).toEqual([1, 2, 3, 4, 5]);
    expect(ci.CHAOS_SEEDS).toBe(all.CHAOS_SEEDS);
    expect(Number(ci.CHAOS_SECONDS)).toBeLessThan(Number(all.CHAOS_SECONDS));
  });

  test("are otherwise one at random", () => {
    const seeds = Array.from({ length: 20 }, () => chaosSettings(NOTHING).CHAOS_SEEDS);
    expect(new Set(seeds).size).toBeGreaterThan(1);
    for (const seed of seeds) expect(seedsOf(seed)).toHaveLength(1);
  });

  test.each(["", "a", "5-3", "1-", "-1", "1.5", "1000000000"])("are not %j", (seed) => {
    expect(() => chaosSettings({ ...NOTHING, seed })).toThrow("no seeds");
  });

  test.each(["0", "3601", "soon"])("do not last %s seconds", (seconds) => {
    expect(() => chaosSettings({ ...NOTHING, seconds })).toThrow("--seconds");
  });
});
