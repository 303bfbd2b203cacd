import { globSync } from "node:fs";
import { ROOT } from "@svc/cli/instance";
import { BUILDS, isIn, LEFT_OUT, passesOf, STAGES, stagesOf } from "@svc/tools/testing/plan";
import { MACHINE_PROJECTS, VITEST_PROJECTS } from "@svc/tools/testing/suites";
import { describe, expect, it } from "vitest";

const titles = (...args: Parameters<typeof passesOf>) => passesOf(...args).map(({ title }) => title);

describe("the plan of the tests", () => {
  it("has every suite once, in CI all but those of the images, of microVMs and of KVM", () => {
    const suites = [...VITEST_PROJECTS, ...MACHINE_PROJECTS, "checks", "fuzz"] as const;
    expect(STAGES.flat(2).toSorted()).toEqual([...suites, ...Object.keys(BUILDS)].toSorted());
    expect(suites.every((suite) => isIn("all", suite))).toBe(true);
    expect(suites.filter((suite) => !isIn("ci", suite))).toEqual(["images", "microvm", "kvm"]);
  });

  it("keeps the order of stages and lanes for the suites that are wanted, and builds what they need before", () => {
    const wanted = ["slow", "e2e", "live", "compat"];
    expect(stagesOf((suite) => wanted.includes(suite), "ci")).toEqual([
      [["compat build"]],
      [["e2e", "compat"], ["live"]],
      [["slow"]],
    ]);
  });

  it("has every suite that runs without a choice once", () => {
    const usual = stagesOf((suite) => isIn("usual", suite), "usual").flat(2);
    expect(usual.toSorted()).toEqual(["checks", "e2e", "live", "unit"]);
  });

  it("names only files that exist as left out", () => {
    for (const file of LEFT_OUT) expect(globSync(file, { cwd: ROOT }), file).not.toEqual([]);
  });

  it("cuts a machine off for longer where everything runs", () => {
    const cuts = (["usual", "ci", "all"] as const).map((scope) => passesOf("e2e", scope, {})[0]?.env);
    expect(cuts).toEqual([{}, {}, { FLEET_CUT_SECONDS: "30" }]);
  });

  it("leaves nothing out of a pass over everything but what is the same cold and warm", () => {
    for (const project of VITEST_PROJECTS) {
      const [first, ...others] = passesOf(project, "all", {});
      expect(first?.exclude).toEqual([]);
      expect(first?.files).toBeUndefined();
      for (const pass of others)
        expect([{ SANDBOX_WARM_START: "off" }, { SVC_TOPOLOGY: "separate" }]).toContainEqual(pass.env);
    }
  });
});

describe("how often a suite runs", () => {
  it("twice, with warm starts and without, where hostile or compatible programs start", () => {
    for (const suite of ["escape", "slow", "compat"] as const)
      expect(titles(suite, "all", {})).toEqual([`${suite}, warm`, `${suite}, cold`]);
  });

  it("in CI twice only with hostile programs, the second time with chosen files", () => {
    expect(titles("slow", "ci", {})).toEqual(["slow, warm"]);
    const [warm, cold] = passesOf("escape", "ci", {});
    expect(warm?.files).toBeUndefined();
    expect([warm, cold].map((pass) => pass?.env.SANDBOX_WARM_START)).toEqual(["on", "off"]);
    for (const file of cold?.files ?? []) expect(globSync(`${file}*`, { cwd: ROOT }), file).not.toEqual([]);
  });

  it("end to end once more in CI for chosen files, with a process for each component", () => {
    expect(titles("e2e", "usual", {})).toEqual(["e2e"]);
    const [, separate] = passesOf("e2e", "ci", {});
    expect(separate?.env).toEqual({ SVC_TOPOLOGY: "separate" });
    for (const file of separate?.files ?? []) expect(globSync(file, { cwd: ROOT }), file).not.toEqual([]);
    expect(titles("e2e", "ci", { SVC_TOPOLOGY: "combined" })).toEqual(["e2e"]);
  });

  it("once as the environment says, and once where it makes no difference", () => {
    expect(titles("escape", "all", { SANDBOX_WARM_START: "off" })).toEqual(["escape"]);
    expect(titles("unit", "all", {})).toEqual(["unit"]);
  });
});
