import { drawChart, linear, logarithmic } from "@svc/tools/bench/chart";
import { drawingsOf } from "@svc/tools/bench/charts";
import { fit } from "@svc/tools/bench/programmatic/fit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { around, NOTHING, resultOf } from "./support.ts";

const positive = fc.double({ min: 0.001, max: 1e6, noNaN: true });

describe("axes", () => {
  it("hold everything that they are made for, with ticks that rise", () => {
    fc.assert(
      fc.property(positive, fc.double({ min: 1, max: 1e4, noNaN: true }), (least, factor) => {
        const most = least * factor;
        for (const { ticks } of [linear("x", most), logarithmic("x", least, most)]) {
          expect(ticks.at(-1)).toBeGreaterThanOrEqual(most * 0.999);
          expect(ticks[0]).toBeLessThanOrEqual(least);
          expect(ticks.length).toBeGreaterThan(1);
          expect(ticks.every((tick, index) => index === 0 || tick > (ticks[index - 1] as number))).toBe(true);
        }
      }),
    );
  });
});

describe("a chart", () => {
  const chart = {
    title: "a < b & c",
    x: linear("calls", 100),
    y: logarithmic("ms", 1, 100),
    series: [
      { name: "line", points: [[0, 1] as const, [100, 100] as const] },
      { name: "points", style: "points" as const, points: [[50, 10] as const, [50, 1e9] as const] },
    ],
  };

  it("is the same for the same data", () => {
    expect(drawChart(chart)).toBe(drawChart(chart));
  });

  it("places points by its axes, and those beyond at their ends", () => {
    const svg = drawChart(chart);
    expect(svg).toContain('d="M64 276L620 52"');
    expect(svg).toContain('<circle cx="342" cy="164"');
    expect(svg).toContain('<circle cx="342" cy="52"');
  });

  it("escapes what it shows", () => {
    expect(drawChart(chart)).toContain("<title>a &lt; b &amp; c</title>");
  });
});

describe("the charts of a result", () => {
  const load = (inFlight: number) => ({
    scenario: "hello-python",
    inFlight,
    requests: 41,
    perSecond: 100,
    cpuMs: 10,
    latency: around(10),
    errors: 0,
  });
  const warm = {
    ...NOTHING,
    bare: { python: around(10) },
    scenarios: {
      "hello-python": around(8),
      pandas: around(30, 5),
      "calls-1": around(40, 3),
      "calls-5": around(80, 3),
      "calls-20": around(230, 3),
    },
    loads: [load(1), load(2), load(4)],
    burst: {
      requests: 100,
      last: around(700),
      againstIdeal: around(1.1),
      answersMs: [10, 20],
      idealMs: 20,
      errors: 0,
    },
  };
  const drawings = drawingsOf(
    resultOf({ warm, cold: { ...NOTHING, scenarios: { "hello-python": around(20) } } }),
  );
  const svgOf = (name: string) => drawings.find((drawing) => drawing.name === name)?.svg;

  it("are one for each scenario with samples enough, and one for each kind of load", () => {
    expect(drawings.map(({ name }) => name)).toEqual(["hello-python", "concurrency", "burst", "calls"]);
  });

  it("show warm and cold starts beside the bare command", () => {
    for (const label of ["service, warm", "service, cold", "bare python"]) {
      expect(svgOf("hello-python")).toContain(`>${label}</text>`);
    }
    expect(svgOf("hello-python")?.match(/fill="none"/g)?.length).toBe(3);
  });

  it("show how tool calls add up", () => {
    expect(svgOf("calls")).toContain("30 ms + 10.0 ms per call (R² 1.0000)");
    expect(svgOf("calls")?.match(/<circle/g)?.length).toBe(3);
  });

  it("are none for nothing", () => {
    expect(drawingsOf(resultOf({ warm: NOTHING }))).toEqual([]);
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
