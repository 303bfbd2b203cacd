import { BARE } from "@svc/tools/bench/bare";
import type { Measured } from "@svc/tools/bench/result";
import { SCENARIOS } from "@svc/tools/bench/scenarios";
import { TARGETS, targetTable } from "@svc/tools/bench/targets";
import { describe, expect, it } from "vitest";
import { around, NOTHING } from "./support.ts";

/** As good as it must just be, times this; beyond 1 everything misses its target. */
function measuredAt(share: number): Measured {
  const bare = Object.fromEntries(BARE.map(({ name }) => [name, around(100)]));
  const load = (scenario: string, perSecond: number) => ({
    scenario,
    inFlight: 8,
    requests: 400,
    perSecond: perSecond / share,
    cpuMs: 10,
    latency: around(10),
    errors: share > 1 ? 1 : 0,
  });
  const spread = (p50: number) => ({ ...around(p50), p99: p50 * 3 * share });
  return {
    ...NOTHING,
    bare,
    scenarios: {
      "hello-python": spread(100 * share),
      pandas: around(10 * share),
      plot: around(15 * share),
      "hello-javascript": around(50 * share),
      "hello-bash": around(100 + 7 * share),
    },
    cpu: [{ name: "hello-python", requests: 100, components: {}, total: 12.5 * share, parts: [] }],
    loads: [load("hello-python", 150), load("pandas", 80)],
    burst: {
      requests: 100,
      last: around(1000),
      againstIdeal: around(1.3 * share),
      answersMs: [],
      idealMs: 1000,
      errors: share > 1 ? 1 : 0,
    },
    memory: {
      idleMib: { api: 300 * share, redis: 50 * share },
      afterLoadMib: {},
      running: [],
      perProgramMib: 25 * share,
    },
  };
}

describe("targets", () => {
  it("are all measured by what is measured without a choice", () => {
    expect(targetTable(measuredAt(0.9)).rows.length).toBe(TARGETS.length);
    const scenarios = new Set(SCENARIOS.map(({ name }) => name));
    for (const name of Object.keys(measuredAt(1).scenarios)) expect(scenarios).toContain(name);
  });

  it("are met when everything is a little better, and missed when it is a little worse", () => {
    const met = (share: number) => new Set(targetTable(measuredAt(share)).rows.map((row) => row.at(-1)));
    expect(met(0.99)).toEqual(new Set(["yes"]));
    expect(met(1.01)).toEqual(new Set(["NO"]));
  });

  it("say the ratio and its bound", () => {
    expect(targetTable(measuredAt(0.5)).rows[0]).toEqual([
      ...["hello-python, p50 against bare python", "0.50 x", "", "at most 1.00 x", "yes"],
    ]);
  });

  it("show what is reached in between all others, and are not judged by it", () => {
    const { bare, scenarios } = measuredAt(2);
    const rows = targetTable({ ...measuredAt(0.5), mixed: { bare, scenarios } }).rows;
    expect(rows[0]?.slice(1)).toEqual(["0.50 x", "2.00 x", "at most 1.00 x", "yes"]);
    expect(rows.filter((row) => row[2] !== "").map(([what]) => what)).toEqual([
      "hello-python, p50 against bare python",
      "hello-python, p99 against its p50",
      "pandas, p50 against bare pandas",
      "plot, p50 against bare plot",
      "hello-javascript, p50 against bare node",
      "hello-bash, p50 above bare bash",
    ]);
  });

  it("leave out what was not measured", () => {
    expect(targetTable(NOTHING).rows).toEqual([]);
  });
});

describe("bare commands", () => {
  it("are there for every scenario that names one", () => {
    const names = BARE.map(({ name }) => name);
    for (const { bare } of SCENARIOS) if (bare !== undefined) expect(names).toContain(bare);
  });
});
