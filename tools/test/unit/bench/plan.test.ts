import { choose, inMode } from "@svc/tools/bench/choice";
import { latenciesOf } from "@svc/tools/bench/latency";
import { groupsByThemselves, groupsInTurn, HELLO_BESIDE_TOOLS, planOf } from "@svc/tools/bench/plan";
import type { Mode } from "@svc/tools/bench/settings";
import type { Group } from "@svc/tools/bench/turns";
import { describe, expect, it } from "vitest";
import { around } from "./support.ts";

function planned(names: readonly string[], mode: Mode = "warm", n = 200) {
  const { scenarios } = inMode(choose(names, undefined), mode);
  return planOf(scenarios, n, mode).map((each) => ({ ...each, sample: async () => 1 }));
}

describe("what was measured", () => {
  it("stands in the order of the plan, with the hello-python beside tools apart", () => {
    const cases = planned(["hello-python", "hello-bash", "calls-1"]);
    const summaries = cases.map(({ name }, index) => [name, around(index + 1)] as const);
    const { bare, scenarios, helloBesideTools } = latenciesOf(cases, new Map(summaries.toReversed()));
    expect(Object.keys(bare)).toEqual(["true", "python", "bash", "host-python"]);
    expect(Object.keys(scenarios)).toEqual(["hello-python", "hello-bash", "calls-1"]);
    expect(scenarios["hello-python"]).toEqual(around(5));
    expect(helloBesideTools).toEqual(around(cases.length));
  });
});

const namesOf = (groups: readonly Group[]) => groups.map(({ cases }) => cases.map(({ name }) => name));
const groupWith = (groups: readonly Group[], name: string) =>
  namesOf(groups).find((names) => names.includes(name));

describe("what is measured beside a block alone", () => {
  it("is what the machine is like", () => {
    expect(planned(["sessions"]).map(({ name }) => name)).toEqual([
      "bare true",
      "bare python",
      "bare host-python",
    ]);
  });
});

describe("what is measured by itself", () => {
  const groups = groupsByThemselves(planned([]));

  it("is each kind with its bare command", () => {
    expect(groupWith(groups, "pandas")).toEqual(["bare pandas", "pandas"]);
    expect(groupWith(groups, "hello-python")).toEqual([
      ...["bare true", "bare python", "bare host-python", "hello-python"],
    ]);
    expect(groupWith(groups, "upload-1mb")).toEqual(["upload-1mb"]);
  });

  it("is programs with tools with a hello-python of their own", () => {
    const tools = groupWith(groups, "calls-1");
    for (const name of [HELLO_BESIDE_TOOLS, "calls-5", "calls-200", "gather-5", "bash-call"]) {
      expect(tools).toContain(name);
    }
    expect(tools).not.toContain("hello-python");
  });

  it("has no case twice", () => {
    const all = namesOf(groups).flat();
    expect(new Set(all).size).toBe(all.length);
  });

  it("alternates where a scenario says so, and both sides warm up alike then", () => {
    const alternating = groups.filter(({ alternates }) => alternates);
    expect(namesOf(alternating)).toEqual([["bare node", "hello-javascript"]]);
    expect(new Set(alternating[0]?.cases.map(({ warmUp }) => warmUp)).size).toBe(1);
  });

  it("needs no hello-python beside tools without tools, and warms it up when nothing else does", () => {
    const firstRuns = (names: readonly string[]) =>
      planned(names).find(({ name }) => name === HELLO_BESIDE_TOOLS)?.firstRuns;
    expect(firstRuns(["hello-python", "pandas"])).toBeUndefined();
    expect(firstRuns(["calls-1"])).toBe(1000);
    expect(firstRuns(["hello-python", "calls-1"])).toBe(0);
  });

  it("warms up by its share of the samples, and less where programs start cold", () => {
    const warmUps = (mode: Mode) =>
      new Map(planned([], mode).map(({ name, warmUp, firstRuns }) => [name, [firstRuns, warmUp]]));
    expect(warmUps("warm").get("hello-bash")).toEqual([1000, 300]);
    expect(warmUps("warm").get("calls-200")).toEqual([25, 8]);
    expect(warmUps("cold").get("hello-bash")).toEqual([100, 10]);
    expect(warmUps("cold").get("calls-1")).toBeUndefined();
  });
});

describe("what is measured in between all others", () => {
  it("is every kind, each program with tools as a kind of its own", () => {
    const cases = planned([]);
    const groups = groupsInTurn(cases);
    expect(groupWith(groups, "calls-1")).toEqual(["calls-1"]);
    expect(groupWith(groups, "plot")).toEqual(["bare plot", "plot"]);
    const all = cases.map(({ name }) => name).filter((name) => name !== HELLO_BESIDE_TOOLS);
    expect(namesOf(groups).flat().toSorted()).toEqual(all.toSorted());
  });

  it("has half the samples, of bare commands that do not alternate a quarter", () => {
    const samples = new Map(
      groupsInTurn(planned([])).flatMap(({ cases }) => cases.map(({ name, n }) => [name, n])),
    );
    const expected = { "hello-python": 100, "bare python": 50, "hello-javascript": 100, "bare node": 100 };
    for (const [name, n] of Object.entries(expected)) expect(samples.get(name)).toBe(n);
    for (const n of samples.values()) expect(n).toBeGreaterThan(0);
  });

  it("is nothing when there are no others", () => {
    expect(groupsInTurn(planned(["hello-python"]))).toEqual([]);
    expect(groupsInTurn(planned(["hello-python", "hello-bash"])).length).toBe(2);
  });
});
