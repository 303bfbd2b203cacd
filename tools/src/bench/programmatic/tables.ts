/** Tables of programs with tools. Pure. */
import type { Latencies, Measured } from "../result.ts";
import type { Summary } from "../statistics.ts";
import { ms, type Table, times } from "../table.ts";
import { BY_CALLS, TOOL_SCENARIOS, type ToolScenario } from "./scenarios.ts";

const COMPARED = "hello-python";

/** The time with which programs with tools are compared: hello-python in turn with them. */
export const helloOf = ({ helloBesideTools, scenarios }: Latencies): Summary | undefined =>
  helloBesideTools ?? scenarios[COMPARED];

export function toolTables(result: Measured): Table[] {
  return [callTable(result), growthTable(result), pausedTable(result)];
}

/** Samples of the scenarios that were measured. */
function measured(result: Measured, scenarios: readonly ToolScenario[]): [ToolScenario, Summary][] {
  return scenarios.flatMap((scenario) => {
    const summary = result.scenarios[scenario.name];
    return summary === undefined ? [] : [[scenario, summary]];
  });
}

const cpuOf = (result: Measured, name: string) => result.cpu.find((row) => row.name === name)?.total;

function callTable(result: Measured): Table {
  const hello = helloOf(result);
  const helloCpu = cpuOf(result, COMPARED);
  return {
    title: "Programs with tools",
    note: `From the start to the end, with every resume; the caller answers at once. Milliseconds. p50 is also compared with ${COMPARED} in turn with them${hello === undefined ? "" : ` (${ms(hello.p50)} ms)`}, processor time of all components with ${COMPARED}.`,
    head: ["scenario", "what", "n", "p50", "p95", "against hello", "CPU ms", "CPU against hello"],
    rows: measured(result, TOOL_SCENARIOS).map(([{ name, about }, { n, p50, p95 }]) => {
      const cpu = cpuOf(result, name);
      return [
        name,
        about,
        String(n),
        ms(p50),
        ms(p95),
        times(p50, hello?.p50),
        ms(cpu ?? 0),
        times(cpu, helloCpu),
      ];
    }),
  };
}

/** What one more call costs: nothing changes with the number of those before it. */
function growthTable(result: Measured): Table {
  const points = measured(result, BY_CALLS);
  const [first] = points;
  return {
    title: "Cost of one more call",
    note: "Sequential calls; milliseconds that each call beyond the first adds to p50, and to the processor time of all components.",
    head: ["calls", "p50", "for each further call", "CPU ms", "CPU for each further call"],
    rows: points.slice(1).map(([{ name, program }, { p50 }]) => {
      const more = program.calls - (first?.[0].program.calls ?? 0);
      const cpu = cpuOf(result, name) ?? 0;
      const firstCpu = cpuOf(result, first?.[0].name ?? "") ?? 0;
      return [
        String(program.calls),
        ms(p50),
        ms((p50 - (first?.[1].p50 ?? 0)) / more),
        ms(cpu),
        ms((cpu - firstCpu) / more),
      ];
    }),
  };
}

function pausedTable({ paused = [] }: Measured): Table {
  return {
    title: "Paused programs",
    note: "Programs that wait for the result of their first call, at the default SANDBOX_MAX_PAUSED (32): the rest is run from the top when it goes on. Memory is the proportional set size of all components; processor time is that of a second in which nobody asks for anything. Resumes are four at a time.",
    head: [
      "paused",
      "MiB",
      "MiB per program",
      "idle CPU ms/s",
      "hello p50",
      "hello p95",
      "resume p50",
      "resume p95",
    ],
    rows: paused.map(({ paused: count, totalMib, perProgramMib, idleCpuMsPerSecond, hello, resume }) => [
      String(count),
      totalMib.toFixed(0),
      count === 0 ? "" : perProgramMib.toFixed(2),
      idleCpuMsPerSecond.toFixed(1),
      ms(hello.p50),
      ms(hello.p95),
      resume === undefined ? "" : ms(resume.p50),
      resume === undefined ? "" : ms(resume.p95),
    ]),
  };
}

/** Calls and p50 of each measured number of calls. */
export function growth(result: Measured): { calls: number; ms: number }[] {
  return measured(result, BY_CALLS).map(([{ program }, { p50 }]) => ({ calls: program.calls, ms: p50 }));
}
