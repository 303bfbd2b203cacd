import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { describe, expect, it } from "vitest";
import { numbersPage } from "../../src/page.ts";
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
    expect(new Set(SCENARIOS.map(({ name }) => name)).size).toBe(SCENARIOS.length);
    for (const { share } of SCENARIOS) expect(share > 0 && share <= 1).toBe(true);
  });
});

describe("docs/numbers.md", () => {
  it("is what its result generates", () => {
    const page = readFileSync(join(ROOT, "docs/numbers.md"), "utf8");
    const source = /^<!-- Generated from (\S+) by /.exec(page)?.[1] ?? "";
    expect(page).toBe(numbersPage(readResult(join(ROOT, source)), source));
  });

  it("comes from a committed result", () => {
    const names = readdirSync(join(ROOT, "bench/results")).filter((name) => name.endsWith(".json"));
    expect(names.length).toBeGreaterThan(0);
    for (const name of names)
      expect(readResult(join(ROOT, "bench/results", name)).conditions.cpu).not.toBe("");
  });
});
