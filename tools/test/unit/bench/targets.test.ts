import { describe, expect, it } from "vitest";
import { BARE } from "../../../src/bench/bare.ts";
import { TOOL_SCENARIOS } from "../../../src/bench/programmatic/scenarios.ts";
import type { Measured } from "../../../src/bench/result.ts";
import { SCENARIOS } from "../../../src/bench/scenarios.ts";
import { TARGETS, targetTable } from "../../../src/bench/targets.ts";
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
      "hello-python": spread(80 * share),
      pandas: around(10 * share),
      plot: around(25 * share),
      "hello-javascript": around(60 * share),
      "hello-bash": around(100 + 6 * share),
      "calls-1": around(2.5 * 80 * share ** 2),
      "calls-5": around(5 * 80 * share ** 2),
      "gather-5": around(3 * 80 * share ** 2),
    },
    cpu: [{ name: "hello-python", requests: 100, components: {}, total: 12 * share, parts: [] }],
    loads: [load("hello-python", 140), load("pandas", 80)],
    burst: {
      requests: 100,
      last: around(1000),
      againstIdeal: around(1.3 * share),
      answersMs: [],
      idealMs: 1000,
      errors: share > 1 ? 1 : 0,
    },
    memory: {
      idleMib: { api: 400 * share, redis: 50 * share },
      afterLoadMib: {},
      running: [],
      perProgramMib: 25 * share,
    },
  };
}

describe("targets", () => {
  it("are all measured by what is measured without a choice", () => {
    expect(targetTable(measuredAt(0.9)).rows.length).toBe(TARGETS.length);
    const scenarios = new Set([...SCENARIOS, ...TOOL_SCENARIOS].map(({ name }) => name));
    for (const name of Object.keys(measuredAt(1).scenarios)) expect(scenarios).toContain(name);
  });

  it("are met when everything is a little better, and missed when it is a little worse", () => {
    const met = (share: number) => new Set(targetTable(measuredAt(share)).rows.map((row) => row.at(-1)));
    expect(met(0.99)).toEqual(new Set(["yes"]));
    expect(met(1.01)).toEqual(new Set(["NO"]));
  });

  it("say the ratio and its bound", () => {
    expect(targetTable(measuredAt(0.5)).rows[0]).toEqual([
      ...["hello-python, p50 against bare python", "0.40 x", "", "at most 0.80 x", "yes"],
    ]);
  });

  it("show what is reached in between all others, and are not judged by it", () => {
    const { bare, scenarios } = measuredAt(2);
    const rows = targetTable({ ...measuredAt(0.5), mixed: { bare, scenarios } }).rows;
    expect(rows[0]?.slice(1)).toEqual(["0.40 x", "1.60 x", "at most 0.80 x", "yes"]);
    expect(rows.filter((row) => row[2] !== "").map(([what]) => what)).toEqual([
      "hello-python, p50 against bare python",
      "hello-python, p99 against its p50",
      "pandas, p50 against bare pandas",
      "plot, p50 against bare plot",
      "hello-javascript, p50 against bare node",
      "hello-bash, p50 above bare bash",
      "one tool call, p50 against hello-python",
      "five tool calls, p50 against hello-python",
      "gather of five, p50 against hello-python",
    ]);
  });

  it("compare tool calls with the hello-python that took turns with them", () => {
    const scenarios = { "hello-python": around(10), "calls-1": around(20) };
    const [row] = targetTable({
      ...NOTHING,
      scenarios: { "calls-1": around(20) },
      helloBesideTools: around(8),
    }).rows;
    expect(row?.[1]).toBe("2.50 x");
    const both = { ...NOTHING, scenarios, helloBesideTools: around(8), mixed: { bare: {}, scenarios } };
    expect(targetTable(both).rows.find(([what]) => what?.startsWith("one tool call"))).toEqual([
      ...["one tool call, p50 against hello-python", "2.50 x", "2.00 x", "at most 2.50 x", "yes"],
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
