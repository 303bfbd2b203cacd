import { globSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ROOT } from "../../src/instance.ts";
import { isIn, LEFT_OUT, passesOf, STAGES, stagesOf } from "../../src/testing/plan.ts";
import { VITEST_PROJECTS } from "../../src/testing/suites.ts";

const titles = (...args: Parameters<typeof passesOf>) => passesOf(...args).map(({ title }) => title);

describe("the plan of the tests", () => {
  it("has every suite once, in CI too", () => {
    const suites = STAGES.flat(2);
    expect(suites.toSorted()).toEqual([...VITEST_PROJECTS, "checks", "fuzz", "v2"].toSorted());
    expect(suites.every((suite) => isIn("ci", suite) && isIn("all", suite))).toBe(true);
  });

  it("keeps the order of stages and lanes for the suites that are wanted", () => {
    const wanted = ["slow", "live", "compat", "client"];
    expect(stagesOf((suite) => wanted.includes(suite))).toEqual([
      [],
      [["live"], ["compat", "client"]],
      [["slow"]],
    ]);
  });

  it("names only files that exist as left out", () => {
    for (const file of LEFT_OUT) expect(globSync(file, { cwd: ROOT }), file).not.toEqual([]);
  });

  it("leaves nothing out of a pass over everything but what is the same cold and warm", () => {
    for (const project of VITEST_PROJECTS) {
      const [first, ...others] = passesOf(project, "all", undefined);
      expect(first?.exclude).toEqual([]);
      expect(first?.files).toBeUndefined();
      for (const pass of others) expect(pass.start).toBe("cold");
    }
  });
});

describe("how often a suite runs", () => {
  it("twice, with warm starts and without, where hostile or compatible programs start", () => {
    for (const suite of ["escape", "slow", "compat"] as const)
      expect(titles(suite, "all", undefined)).toEqual([`${suite}, warm`, `${suite}, cold`]);
  });

  it("in CI twice only with hostile programs, the second time with chosen files", () => {
    expect(titles("slow", "ci", undefined)).toEqual(["slow, warm"]);
    const [warm, cold] = passesOf("escape", "ci", undefined);
    expect([warm?.files, warm?.start, cold?.start]).toEqual([undefined, "warm", "cold"]);
    for (const file of cold?.files ?? []) expect(globSync(`${file}*`, { cwd: ROOT }), file).not.toEqual([]);
  });

  it("once as the environment says, and once where it makes no difference", () => {
    expect(titles("escape", "all", "off")).toEqual(["escape"]);
    expect(titles("unit", "all", undefined)).toEqual(["unit"]);
  });
});
