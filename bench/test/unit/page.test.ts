import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { numbersPage, numbersPlot, PLOT } from "../../src/page.ts";
import { fit } from "../../src/programmatic/plot.ts";
import { TOOL_SCENARIOS } from "../../src/programmatic/scenarios.ts";
import { type Result, readResult } from "../../src/result.ts";
import { SCENARIOS } from "../../src/scenarios.ts";
import { asText, comparisonTable, tablesOf } from "../../src/tables.ts";

const summary = (p50: number) => ({
  n: 10,
  min: p50,
  p50,
  p95: p50 * 2,
  p99: p50 * 3,
  max: p50 * 4,
  mean: p50,
});

const result: Result = {
  version: 1,
  date: "2026-01-31T10:00:00.000Z",
  command: "./svc bench",
  mode: "local",
  n: 10,
  conditions: {
    cpu: "A CPU",
    cores: 2,
    memoryGib: 24,
    kernel: "6.1",
    system: "Debian",
    node: "v24",
    runtimes: { python: "3.11.2" },
    commit: "abc",
    loadBefore: 0.1,
  },
  bare: { python: summary(10), true: summary(1) },
  bareCpuMs: { python: 9, true: 0.5 },
  scenarios: { "hello-python": summary(20) },
  loads: [
    { name: "concurrency 8", inFlight: 8, requests: 80, perSecond: 100, latency: summary(80), errors: 0 },
  ],
  cpu: [{ name: "hello-python", requests: 10, components: { api: 1, jaild: 11 }, total: 12 }],
  idleMemoryMib: { api: 80, redis: 5 },
};

describe("tables", () => {
  it("compare a scenario with its bare command", () => {
    const [latency] = tablesOf(result);
    expect(latency?.rows).toEqual([
      ["hello-python", "print(1)", "10", "20.0", "40.0", "60.0", "2.00 x python, +10.0 ms"],
    ]);
  });

  it("align numbers to the right and text to the left", () => {
    const memory = tablesOf(result).at(-1);
    if (memory === undefined) throw new Error("there is no table");
    expect(asText(memory)).toContain(
      "  component  MiB\n  api         80\n  redis        5\n  total       85\n",
    );
  });

  it("compare the file path with the bare server, when it was measured", () => {
    const row = {
      name: "upload 20 MiB",
      mib: 20,
      ms: summary(100),
      bareMs: summary(80),
      cpuPerMib: 3,
      bareCpuPerMib: 2,
    };
    const table = (measured: Result) => tablesOf(measured).find(({ title }) => title === "File path");
    expect(table(result)).toBe(undefined);
    expect(table({ ...result, files: [row] })?.rows).toEqual([
      ["upload 20 MiB", "10", "200", "250", "0.80", "3.00", "2.00"],
    ]);
  });

  it("say how much a later result differs", () => {
    const later = { ...result, scenarios: { "hello-python": summary(10) } };
    expect(comparisonTable(result, later).rows[0]).toEqual(["hello-python", "20.0", "10.0", "-50 %"]);
  });
});

describe("scenarios", () => {
  it("have names of their own and shares that leave samples", () => {
    const every = [...SCENARIOS, ...TOOL_SCENARIOS];
    expect(new Set(every.map(({ name }) => name)).size).toBe(every.length);
    for (const { share } of every) expect(share > 0 && share <= 1).toBe(true);
  });
});

describe("programs with tools", () => {
  const calls = {
    ...result,
    scenarios: {
      "hello-python": summary(20),
      "calls-1": summary(40),
      "calls-5": summary(80),
      "calls-20": summary(230),
    },
    cpu: [
      { name: "hello-python", requests: 10, components: {}, total: 10 },
      { name: "calls-1", requests: 10, components: {}, total: 15 },
      { name: "calls-5", requests: 10, components: {}, total: 27 },
      { name: "calls-20", requests: 10, components: {}, total: 72 },
    ],
    paused: [
      { paused: 0, totalMib: 400, perProgramMib: 0, idleCpuMsPerSecond: 5, hello: summary(20) },
      {
        paused: 32,
        totalMib: 560,
        perProgramMib: 5,
        idleCpuMsPerSecond: 5,
        hello: summary(21),
        resume: summary(30),
      },
    ],
  };
  const rowsOf = (title: string) => tablesOf(calls).find((table) => table.title === title)?.rows;

  it("are compared with hello-python", () => {
    expect(rowsOf("Programs with tools")?.[1]?.slice(2)).toEqual([
      ...["10", "80.0", "160", "4.00 x", "27.0", "2.70 x"],
    ]);
  });

  it("say what one more call costs", () => {
    expect(rowsOf("Cost of one more call")).toEqual([
      ["5", "80.0", "10.0", "27.0", "3.0"],
      ["20", "230", "10.0", "72.0", "3.0"],
    ]);
  });

  it("say what paused ones cost", () => {
    expect(rowsOf("Paused programs")?.map((row) => row.slice(0, 4))).toEqual([
      ["0", "400", "", "5.0"],
      ["32", "560", "5.00", "5.0"],
    ]);
  });

  it("are on the page with a plot", () => {
    const sources = [
      { result, path: "a.json" },
      { result: calls, path: "b.json" },
    ];
    expect(numbersPage(sources)).toContain("![30 ms + 10.0 ms per call (R² 1.0000)](numbers-calls.svg)");
    expect(numbersPlot(sources)?.match(/<circle/g)?.length).toBe(3);
    expect(numbersPlot([{ result, path: "a.json" }])).toBe(undefined);
  });
});

describe("the line through measured points", () => {
  const number = fc.double({ min: -1000, max: 1000, noNaN: true });
  const places = fc.uniqueArray(fc.integer({ min: 1, max: 200 }), { minLength: 2, maxLength: 10 });

  it("is found when they lie on one", () => {
    fc.assert(
      fc.property(number, number, places, (start, perCall, calls) => {
        const line = fit(calls.map((each) => ({ calls: each, ms: start + perCall * each })));
        expect(line.perCall).toBeCloseTo(perCall, 5);
        expect(line.start).toBeCloseTo(start, 4);
      }),
    );
  });

  it("explains less when they bend", () => {
    const square = [1, 5, 20, 50, 100, 200].map((calls) => ({ calls, ms: calls ** 2 }));
    expect(fit(square).r2).toBeLessThan(0.96);
  });
});

describe("docs/numbers.md", () => {
  const page = readFileSync(join(ROOT, "docs/numbers.md"), "utf8");
  const sources = (/^<!-- Generated from (.+) by /.exec(page)?.[1] ?? "")
    .split(" ")
    .map((path) => ({ result: readResult(join(ROOT, path)), path }));

  it("is what its results generate", () => {
    expect(page).toBe(numbersPage(sources));
  });

  it("has the plot of its results", () => {
    expect(readFileSync(join(ROOT, "docs", PLOT), "utf8")).toBe(numbersPlot(sources));
  });

  it("comes from a committed result", () => {
    const names = readdirSync(join(ROOT, "bench/results")).filter((name) => name.endsWith(".json"));
    expect(names.length).toBeGreaterThan(0);
    for (const name of names)
      expect(readResult(join(ROOT, "bench/results", name)).conditions.cpu).not.toBe("");
  });
});
