import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import {
  COMBINED_MS,
  COMPONENTS,
  costsOf,
  plus,
  SEPARATE_MS,
  SOURCES,
  scaled,
} from "@svc/tools/scaling/costs";
import { machinesOf, parseMix, workloadOf } from "@svc/tools/scaling/options";
import { MACHINES, memoryOf, planFor } from "@svc/tools/scaling/plan";
import { readMeasurements } from "@svc/tools/scaling/results";
import { averageCost, USUAL, type Workload } from "@svc/tools/scaling/workload";
import { describe, expect, test } from "vitest";

const measurements = readMeasurements();
const { quiet, accounts } = measurements;
const separate = costsOf(quiet, accounts, "separate");
const combined = costsOf(quiet, accounts, "combined");
const memory = memoryOf(quiet);
const planOf = (change: Partial<Workload>, machines = MACHINES) =>
  planFor({ ...USUAL, ...change }, machines, separate, memory);
const total = (cost: { cpuMs: Readonly<Record<string, number>> }) =>
  Object.values(cost.cpuMs).reduce((sum, ms) => sum + ms, 0);

describe("costs", () => {
  test("of every kind are, in one process, what the bench measured", () => {
    for (const [name, cost] of Object.entries(combined.kinds)) {
      const row = quiet.modes.warm?.cpu.find((each) => each.name === name);
      expect(total(cost)).toBeCloseTo(row?.total ?? Number.NaN, 1);
    }
    expect(Object.keys(combined.kinds)).toEqual(expect.arrayContaining(["hello-python", "pandas", "plot"]));
  });

  test("of separate processes are higher by what was measured, and Redis's and the jails' are not", () => {
    const [one, several] = [combined.kinds.pandas, separate.kinds.pandas];
    expect((several?.cpuMs.api ?? 0) / (one?.cpuMs.api ?? 0)).toBeCloseTo(SEPARATE_MS / COMBINED_MS);
    expect(several?.cpuMs.jaild).toBe(one?.cpuMs.jaild);
    expect(several?.cpuMs.redis).toBe(one?.cpuMs.redis);
  });

  test("have no component and no coefficient that is not a number, or is negative", () => {
    for (const cost of [...Object.values(separate.kinds), separate.tools, separate.call, separate.mib]) {
      const { cpuMs, bytes, ...numbers } = cost;
      expect(Object.keys(cpuMs).sort()).toEqual([...COMPONENTS].sort());
      for (const value of [...Object.values({ ...cpuMs, ...bytes, ...numbers })]) {
        expect(value).toBeGreaterThanOrEqual(0);
      }
    }
  });

  test("of a program with 20 calls are what was measured of it", () => {
    const row = quiet.modes.warm?.cpu.find(({ name }) => name === "calls-20");
    const cost = plus(combined.tools, scaled(combined.call, 20));
    expect(Math.abs(total(cost) / (row?.total ?? 0) - 1)).toBeLessThan(0.01);
  });

  test("name sources that exist and say so", () => {
    expect(readFileSync(join(ROOT, "docs/performance.md"), "utf8")).toMatch(
      new RegExp(
        `one process for five components.*${COMBINED_MS} ms for a request instead of ${SEPARATE_MS}`,
      ),
    );
    for (const [, source] of SOURCES) {
      for (const [, file = ""] of source.matchAll(/`((?:bench|cli)\/[^`]+)`/g))
        expect(existsSync(join(ROOT, file)), file).toBe(true);
    }
  });
});

describe("a plan", () => {
  test("needs processors in proportion to the rate, and to the slowness of a processor", () => {
    const [one, ten] = [planOf({ perSecond: 10 }), planOf({ perSecond: 100 })];
    expect(ten.processors).toBeCloseTo(10 * one.processors);
    const slow = planOf({ perSecond: 10 }, { ...MACHINES, speed: 0.5 });
    expect(slow.processors).toBeCloseTo(2 * one.processors);
    expect(one.processors).toBeCloseTo((total(one.cost) * 10) / 1000);
  });

  test("has as many runner machines that none is busier than asked for", () => {
    for (const perSecond of [1, 50, 200, 700]) {
      const { runners, components } = planOf({ perSecond });
      const used = components.filter(({ name }) => ["worker", "runner", "jaild"].includes(name));
      const busy =
        used.reduce((sum, { processors }) => sum + processors, 0) / (runners.machines * MACHINES.cores);
      expect(busy).toBeLessThanOrEqual(MACHINES.busy);
    }
  });

  test("is limited by memory where programs wait long, and by processors where they compute", () => {
    expect(planOf({ perSecond: 50, waitMs: 20_000 }).runners).toMatchObject({ limitedBy: "memory" });
    expect(planOf({ perSecond: 50, ownMs: 2000 }).runners).toMatchObject({ limitedBy: "processors" });
    // 50 a second, 20 s each.
    expect(planOf({ perSecond: 50, waitMs: 20_000 }).runners.runningAtOnce).toBeGreaterThan(1000);
  });

  test("says where one Redis is not enough, and that it is one", () => {
    const plan = planOf({ perSecond: 1000 });
    expect(plan.redisIsEnough).toBe(false);
    expect(plan.redis.busy).toBeGreaterThan(1);
    expect(plan.components.find(({ name }) => name === "redis")?.processes).toBe(1);
    expect(planOf({ perSecond: 10 }).redisIsEnough).toBe(true);
  });

  test("counts files, their bytes, and the records that Redis keeps of them", () => {
    const none = planOf({ perSecond: 10, mix: { "hello-python": 1 } });
    const files = planOf({ perSecond: 10, mix: { "hello-python": 1 }, inputs: 2, outputs: 3, fileMib: 4 });
    expect(none.objects).toEqual({ storedPerSecond: 0, readPerSecond: 0 });
    expect(files.objects).toEqual({ storedPerSecond: 30, readPerSecond: 20 });
    // 5 files of 4 MiB, ten times a second.
    expect(files.mbitPerSecond["egress-gateway"]).toBeGreaterThan((5 * 4 * 2 ** 20 * 10 * 8) / 1e6);
    expect(files.redis.memoryMib).toBeGreaterThan(10 * none.redis.memoryMib);
  });

  test("keeps paused programs by Little's law, and gives them no slot", () => {
    const plan = planOf({ perSecond: 10, mix: { tools: 1 }, calls: 3, pauseMs: 2000 });
    expect(plan.paused.programs).toBeCloseTo(60);
    expect(plan.runners.runningAtOnce).toBeLessThan(5);
  });

  test("averages a mix by its shares", () => {
    const mix = { "hello-python": 3, plot: 1 };
    const cost = averageCost(separate, { ...USUAL, mix });
    const [hello, plot] = [separate.kinds["hello-python"], separate.kinds.plot];
    expect(cost.cpuMs.jaild).toBeCloseTo(0.75 * (hello?.cpuMs.jaild ?? 0) + 0.25 * (plot?.cpuMs.jaild ?? 0));
  });
});

describe("the command line", () => {
  const none = Object.fromEntries(
    "rps mix own-ms wait-ms inputs outputs file-kib calls pause-ms cores memory busy speed"
      .split(" ")
      .map((name) => [name, undefined]),
  ) as Parameters<typeof machinesOf>[0];

  test("without options is the usual load on the usual machine", () => {
    expect(workloadOf(none, separate)).toEqual(USUAL);
    expect(machinesOf(none)).toEqual(MACHINES);
  });

  test("takes shares of known kinds", () => {
    expect(parseMix("pandas=3,tools=1", separate)).toEqual({ pandas: 3, tools: 1 });
    for (const text of [
      "",
      "pandas",
      "pandas=",
      "pandas=-1",
      "nonsense=1",
      "pandas=1,pandas=2",
      "__proto__=1",
    ])
      expect(() => parseMix(text, separate), text).toThrow("--mix has no KIND=SHARE");
    expect(() => parseMix("pandas=0", separate)).toThrow("no share above 0");
  });

  test("refuses numbers beyond their range", () => {
    expect(() => machinesOf({ ...none, busy: "100" })).toThrow("--busy must be a whole number from 5 to 95");
    expect(() => workloadOf({ ...none, rps: "0" }, separate)).toThrow("--rps must be a whole number from 1");
  });
});
