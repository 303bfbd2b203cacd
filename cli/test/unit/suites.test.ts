import { describe, expect, it } from "vitest";
import { timesOf } from "../../src/testing/suites.ts";

describe("how often a suite runs", () => {
  it("twice, with warm starts and without, where hostile or compatible programs start", () => {
    for (const suite of ["escape", "slow", "compat"] as const)
      expect(timesOf(suite, {})).toEqual([
        { title: `${suite}, warm`, env: { SANDBOX_WARM_START: "on" } },
        { title: `${suite}, cold`, env: { SANDBOX_WARM_START: "off" } },
      ]);
  });

  it("once as the environment says, and once where it makes no difference", () => {
    expect(timesOf("escape", { SANDBOX_WARM_START: "off" })).toEqual([{ title: "escape", env: {} }]);
    expect(timesOf("unit", {})).toEqual([{ title: "unit", env: {} }]);
  });
});
