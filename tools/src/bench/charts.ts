/** The charts of a result: the distribution of its latencies, the effect of load, the course of a soak. Pure. */
import { type Chart, drawChart, linear, logarithmic, type Point, type Series } from "./chart.ts";
import { EVERY_SCENARIO } from "./choice.ts";
import { describeFit, fit } from "./programmatic/fit.ts";
import { growth } from "./programmatic/tables.ts";
import type { Result } from "./result.ts";
import type { Scenario } from "./scenarios.ts";
import { MODES, type Mode } from "./settings.ts";
import type { SoakResult } from "./soak/run.ts";
import { total } from "./soak/tables.ts";
import { percentile } from "./statistics.ts";

export interface Drawing {
  /** Name of the file without its ending. */
  name: string;
  title: string;
  svg: string;
}

/** With fewer samples a distribution says nothing. */
const LEAST_SAMPLES = 30;
/** With fewer points there is no line to show. */
const LEAST_POINTS = 3;
const SHARES = [...Array.from({ length: 50 }, (_, index) => index * 2), 99, 100];

export function drawingsOf(result: Result): Drawing[] {
  return [
    ...EVERY_SCENARIO.flatMap((scenario) => distribution(result, scenario)),
    ...throughput(result),
    ...burst(result),
    ...calls(result),
  ];
}

export function drawingsOfSoak({ tenths }: SoakResult): Drawing[] {
  const overTenths = (of: (tenth: (typeof tenths)[number]) => number): Point[] =>
    tenths.map((tenth, index) => [index + 1, of(tenth)]);
  const x = { label: "tenth", scale: "linear", ticks: tenths.map((_, index) => index + 1) } as const;
  const latency = [
    { name: "p50", points: overTenths((tenth) => tenth.latency.p50) },
    { name: "p99", points: overTenths((tenth) => tenth.latency.p99) },
  ];
  const memory = [
    { name: "all components", points: overTenths(({ held }) => total(held.memoryMib)) },
    { name: "what expires in Redis", points: overTenths(({ held }) => held.redis.passingMib) },
  ];
  return [
    drawing("soak-latency", {
      title: "Soak: answers",
      x,
      y: linear("ms", most(latency, 1)),
      series: latency,
    }),
    drawing("soak-memory", {
      title: "Soak: memory",
      x,
      y: linear("MiB", most(memory, 1)),
      series: memory,
    }),
  ];
}

function distribution({ modes }: Result, { name, about, bare }: Scenario): Drawing[] {
  const ofMode = (mode: Mode, kind: "scenarios" | "bare", key: string | undefined) =>
    key === undefined ? undefined : modes[mode]?.[kind][key]?.samples;
  const candidates = [
    { name: "service, warm", samples: ofMode("warm", "scenarios", name) },
    { name: "service, cold", samples: ofMode("cold", "scenarios", name) },
    { name: `bare ${bare}`, samples: ofMode("warm", "bare", bare) ?? ofMode("cold", "bare", bare) },
  ];
  const series = candidates.flatMap(({ name: label, samples }): Series[] => {
    if (samples === undefined || samples.length < LEAST_SAMPLES) return [];
    const sorted = samples.toSorted((left, right) => left - right);
    return [{ name: label, points: SHARES.map((share) => [percentile(sorted, share / 100), share]) }];
  });
  if (!series.some(({ name: label }) => label.startsWith("service"))) return [];
  const values = series.flatMap(({ points }) => points.map(([ms]) => ms));
  return [
    drawing(name, {
      title: `${name}: ${about}`,
      x: logarithmic("ms", Math.min(...values), Math.max(...values)),
      y: { label: "% answered", scale: "linear", ticks: [0, 25, 50, 75, 100] },
      series,
    }),
  ];
}

function throughput({ modes }: Result): Drawing[] {
  const series = MODES.flatMap((mode): Series[] => {
    const rows = modes[mode]?.loads.filter(({ scenario }) => scenario === "hello-python") ?? [];
    if (rows.length < LEAST_POINTS) return [];
    return [{ name: mode, points: rows.map(({ inFlight, perSecond }) => [inFlight, perSecond]) }];
  });
  if (series.length === 0) return [];
  const ticks = [...new Set(series.flatMap(({ points }) => points.map(([inFlight]) => inFlight)))];
  return [
    drawing("concurrency", {
      title: "hello-python under sustained load",
      x: { label: "requests in flight", scale: "logarithmic", ticks },
      y: linear("per second", most(series, 1)),
      series,
    }),
  ];
}

function burst({ modes }: Result): Drawing[] {
  const series = MODES.flatMap((mode): Series[] => {
    const row = modes[mode]?.burst;
    if (row === undefined || row.answersMs.length === 0) return [];
    return [
      { name: mode, points: row.answersMs.map((ms, index) => [index + 1, ms]) },
      {
        name: `${mode}, ideal`,
        style: "dashed",
        points: [
          [0, 0],
          [row.requests, row.idealMs],
        ],
      },
    ];
  });
  if (series.length === 0) return [];
  return [
    drawing("burst", {
      title: "hello-python, 100 at once",
      x: linear("answers", most(series, 0)),
      y: linear("ms", most(series, 1)),
      series,
    }),
  ];
}

function calls({ modes }: Result): Drawing[] {
  const points = modes.warm === undefined ? [] : growth(modes.warm);
  if (points.length < LEAST_POINTS) return [];
  const line = fit(points);
  const last = Math.max(...points.map(({ calls: count }) => count));
  const at = (count: number): Point => [count, line.start + line.perCall * count];
  const series: Series[] = [
    { name: "p50", style: "points", points: points.map(({ calls: count, ms }) => [count, ms]) },
    { name: describeFit(points), style: "dashed", points: [at(0), at(last)] },
  ];
  return [
    drawing("calls", {
      title: "Time of a program over its number of tool calls",
      x: linear("sequential tool calls", last),
      y: linear("ms", most(series, 1)),
      series,
    }),
  ];
}

const most = (series: readonly Series[], axis: 0 | 1): number =>
  Math.max(...series.flatMap(({ points }) => points.map((point) => point[axis])));

const drawing = (name: string, chart: Chart): Drawing => ({
  name,
  title: chart.title,
  svg: drawChart(chart),
});
