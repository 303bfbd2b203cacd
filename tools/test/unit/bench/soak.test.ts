import { drawingsOfSoak } from "@svc/tools/bench/charts";
import type { Held } from "@svc/tools/bench/soak/held";
import { KINDS, plan } from "@svc/tools/bench/soak/kinds";
import { ENDED_JOB } from "@svc/tools/bench/soak/redis";
import type { SoakResult, Tenth } from "@svc/tools/bench/soak/run";
import { isSteady, soakTables } from "@svc/tools/bench/soak/tables";
import { describe, expect, it } from "vitest";
import { CONDITIONS } from "./support.ts";

const held: Held = {
  memoryMib: { api: 80, redis: 10 },
  descriptors: { api: 40, redis: 20 },
  processes: 50,
  cgroups: 200,
  mounts: 20,
  namespaces: 130,
  networkNamespaces: 21,
  redis: { keys: 900, lastingKeys: 9, passingMib: 2 },
  files: 13,
};
const tenth: Tenth = {
  runs: 100,
  perSecond: 80,
  errors: 0,
  latency: { n: 95, p50: 20, p99: 100 },
  kinds: { hello: { n: 30, p50: 10, p99: 20 } },
  held,
};

function soakOf(last: Partial<Tenth>): SoakResult {
  return {
    version: 3,
    kind: "soak",
    date: "2026-01-31T10:00:00.000Z",
    command: "./svc bench soak",
    seconds: 60,
    conditions: CONDITIONS,
    mode: "warm",
    runs: 1000,
    concurrency: 8,
    settings: {},
    start: held,
    tenths: [...Array.from({ length: 9 }, () => tenth), { ...tenth, ...last }],
    errors: [],
  };
}

const withHeld = (more: Partial<Held>) => soakOf({ held: { ...held, ...more } });

describe("a soak is steady", () => {
  it("when the last tenth is as the first", () => {
    expect(isSteady(soakOf({}))).toBe(true);
  });

  it("when what grew passes by itself", () => {
    const redis = { keys: 9000, lastingKeys: 9, passingMib: 22 };
    expect(isSteady(withHeld({ memoryMib: { api: 80, redis: 30 }, redis }))).toBe(true);
  });

  it("up to a p99 of 1.3 times the first", () => {
    expect(isSteady(soakOf({ latency: { n: 95, p50: 20, p99: 130 } }))).toBe(true);
    expect(isSteady(soakOf({ latency: { n: 95, p50: 20, p99: 131 } }))).toBe(false);
  });
});

describe("a soak is not steady", () => {
  const grown: [string, SoakResult][] = [
    ["answers are wrong", soakOf({ errors: 1 })],
    ["memory grows", withHeld({ memoryMib: { api: 120, redis: 10 } })],
    ["Redis grows by what stays", withHeld({ memoryMib: { api: 80, redis: 30 } })],
    ["keys stay in Redis", withHeld({ redis: { ...held.redis, lastingKeys: 10 } })],
    ["descriptors stay open", withHeld({ descriptors: { api: 90, redis: 20 } })],
    ["a process stays", withHeld({ processes: 51 })],
    ["a cgroup stays", withHeld({ cgroups: 201 })],
    ["a mount stays", withHeld({ mounts: 21 })],
    ["a namespace stays", withHeld({ namespaces: 131 })],
    ["a network namespace stays", withHeld({ networkNamespaces: 22 })],
    ["a file stays", withHeld({ files: 14 })],
  ];

  it.each(grown)("when %s", (_what, result) => {
    expect(isSteady(result)).toBe(false);
    expect(soakTables(result)[0]?.rows.filter((row) => row.at(-1) === "NO").length).toBeGreaterThan(0);
  });

  it("when a tenth in the middle had errors", () => {
    const result = soakOf({});
    result.tenths[4] = { ...tenth, errors: 2 };
    expect(isSteady(result)).toBe(false);
  });
});

describe("the tables and charts of a soak", () => {
  it("show every tenth and what was held before", () => {
    const table = soakTables(soakOf({})).find(({ title }) => title === "Soak: tenth by tenth");
    expect(table?.rows.length).toBe(11);
    expect(drawingsOfSoak(soakOf({})).map(({ name }) => name)).toEqual(["soak-latency", "soak-memory"]);
  });

  it("show errors so that a table holds them", () => {
    const result = { ...soakOf({}), errors: ["hello 1: a | b\nc"] };
    expect(soakTables(result).at(-1)?.rows).toEqual([["hello 1: a \\| b c"]]);
  });
});

describe("the plan of a soak", () => {
  it("has every kind by its weight in each hundred, and is always the same", () => {
    expect(KINDS.reduce((sum, { weight }) => sum + weight, 0)).toBe(100);
    const runs = plan(1000);
    expect(runs).toEqual(plan(1000));
    for (let start = 0; start < runs.length; start += 100) {
      const hundred = runs.slice(start, start + 100);
      for (const kind of KINDS) expect(hundred.filter((each) => each === kind).length).toBe(kind.weight);
    }
  });
});

it.each([
  ["a job", "bull:jobs-warm:V1StGXR8_Z5jdHi6B-myT", true],
  ["a round of a program with tools", "bull:jobs-warm:V1StGXR8_Z5jdHi6B-myT.2.1", true],
  ["the lock of a job", "bull:jobs-warm:V1StGXR8_Z5jdHi6B-myT:lock", false],
  ["a list of a queue", "bull:jobs-warm:completed", false],
])("%s is an ended job, or none", (_what, key, isJob) => {
  expect(ENDED_JOB.test(key)).toBe(isJob);
});
