/** Tables of a result. Pure. */
import { EVERY_SCENARIO } from "./choice.ts";
import { isToolScenario } from "./programmatic/scenarios.ts";
import { helloOf, toolTables } from "./programmatic/tables.ts";
import type { Latencies, Measured, Result } from "./result.ts";
import { SCENARIOS } from "./scenarios.ts";
import { sessionTable } from "./sessions/tables.ts";
import { MODES } from "./settings.ts";
import { type Summary, sum } from "./statistics.ts";
import { ms, signed, spread, type Table, times } from "./table.ts";
import { targetTable } from "./targets.ts";

export function tablesOf(result: Result): Table[] {
  const { warm } = result.modes;
  const targets = warm === undefined ? [] : [targetTable(warm)];
  return [...targets.filter(({ rows }) => rows.length > 0), ...partTablesOf(result)];
}

/** Without targets. */
export function partTablesOf({ modes }: Result): Table[] {
  const tables = MODES.flatMap((mode) => {
    const measured = modes[mode];
    if (measured === undefined) return [];
    return tablesOfMode(measured).map((table) => ({ ...table, title: `${table.title} (${mode})` }));
  });
  return tables.filter(({ rows }) => rows.length > 0);
}

function tablesOfMode(measured: Measured): Table[] {
  return [
    latencyTable(measured),
    mixedTable(measured),
    afterStartTable(measured),
    bareTable(measured),
    loadTable(measured),
    burstTable(measured),
    fileTable(measured),
    ...toolTables(measured),
    sessionTable(measured),
    cpuTable(measured),
    memoryTable(measured),
    programMemoryTable(measured),
  ];
}

const NOTE =
  "Milliseconds from the request to its whole answer, through the public API. The last column compares p50 with the bare command.";

function latencyTable(result: Measured): Table {
  const rows = SCENARIOS.flatMap(({ name, about, bare }) => {
    const summary = result.scenarios[name];
    if (summary === undefined) return [];
    return [[name, about, ...spread(summary), againstBare(summary, result, bare)]];
  });
  return {
    title: "One request at a time",
    note: `${NOTE} Each kind is measured by itself, in turn with its bare command, while nothing else is asked of the service, and after 300 such requests (fewer of the slow kinds).`,
    head: ["scenario", "what", "n", "p50", "p95", "p99", "against bare"],
    rows,
  };
}

function mixedTable({ mixed }: Measured): Table {
  const rows = EVERY_SCENARIO.flatMap((scenario) => {
    const summary = mixed?.scenarios[scenario.name];
    if (mixed === undefined || summary === undefined) return [];
    const compared = isToolScenario(scenario)
      ? againstHello(summary, mixed)
      : againstBare(summary, mixed, scenario.bare);
    return [[scenario.name, ...spread(summary), compared]];
  });
  return {
    title: "Each kind in between all others",
    note: "The same requests, where all kinds and their bare commands take short turns in a random order, so that a kind always comes right after others (pandas, plots, files, tool calls, as far as they were chosen), which leave it colder caches and code.",
    head: ["scenario", "n", "p50", "p95", "p99", "against bare, or hello"],
    rows,
  };
}

function againstBare({ p50 }: Summary, { bare }: Latencies, name: string | undefined): string {
  const other = name === undefined ? undefined : bare[name];
  return other === undefined ? "" : `${times(p50, other.p50)} ${name}, ${signed(p50 - other.p50)}`;
}

function againstHello({ p50 }: Summary, latencies: Latencies): string {
  const hello = helloOf(latencies);
  return hello === undefined ? "" : `${times(p50, hello.p50)} hello-python`;
}

function afterStartTable({ afterStart = [] }: Measured): Table {
  return {
    title: "Requests after the start",
    note: "The first requests to a copy that was just started, all of them hello-python; all other numbers were taken after them. V8 compiles the components while they work.",
    head: ["requests", "p50"],
    rows: afterStart.map(({ first, last, p50 }) => [`${first} to ${last}`, ms(p50)]),
  };
}

function bareTable(result: Measured): Table {
  return {
    title: "Bare commands",
    note: "The same programs from the same image without any service, started by a small C program in turn with the requests that are compared with them, each kind by itself. `true` shows what starting costs by itself.",
    head: ["command", "n", "p50", "p95", "p99", "CPU ms"],
    rows: Object.entries(result.bare).map(([name, summary]) => [
      name,
      ...spread(summary),
      (result.bareCpuMs[name] ?? 0).toFixed(1),
    ]),
  };
}

function loadTable(result: Measured): Table {
  return {
    title: "Sustained load",
    note: "Each client sends its next request when it has its answer. CPU is the processor time of all components for each request. p99 is also compared with p50.",
    head: [
      "scenario",
      "in flight",
      "requests",
      "per second",
      "CPU ms",
      "p50",
      "p95",
      "p99",
      "p99 / p50",
      "errors",
    ],
    rows: result.loads.map(({ scenario, inFlight, requests, perSecond, cpuMs, latency, errors }) => [
      scenario,
      String(inFlight),
      String(requests),
      perSecond.toFixed(1),
      cpuMs.toFixed(1),
      ...spread(latency).slice(1),
      (latency.p99 / latency.p50).toFixed(2),
      String(errors),
    ]),
  };
}

function burstTable({ burst }: Measured): Table {
  return {
    title: "Burst",
    note: "hello-python, all at once, several times. Ideal is the time that so many requests take at the throughput with 32 in flight, measured just before. Medians; milliseconds.",
    head: ["requests", "times", "last answer", "against ideal", "worst against ideal", "errors"],
    rows:
      burst === undefined
        ? []
        : [
            [
              String(burst.requests),
              String(burst.last.n),
              ms(burst.last.p50),
              `${burst.againstIdeal.p50.toFixed(2)} x`,
              `${burst.againstIdeal.max.toFixed(2)} x`,
              String(burst.errors),
            ],
          ],
  };
}

function fileTable({ files = [] }: Measured): Table {
  const speed = (mib: number, { p50 }: Summary) => (mib / p50) * 1000;
  return {
    title: "File path",
    note: "One client, through the public API (form, SHA-256, two components) and through a bare Fastify server in the same rounds. Both sync a file and its directory before they answer. MiB/s from p50; processor milliseconds per MiB without the client.",
    head: ["what", "n", "MiB/s", "bare MiB/s", "ratio", "CPU ms/MiB", "bare CPU ms/MiB"],
    rows: files.map(({ name, mib, ms, bareMs, cpuPerMib, bareCpuPerMib }) => [
      name,
      String(ms.n),
      speed(mib, ms).toFixed(0),
      speed(mib, bareMs).toFixed(0),
      (bareMs.p50 / ms.p50).toFixed(2),
      cpuPerMib?.toFixed(2) ?? "not counted",
      bareCpuPerMib.toFixed(2),
    ]),
  };
}

function cpuTable(result: Measured): Table {
  const components = [...new Set(result.cpu.flatMap((row) => Object.keys(row.components)))];
  return {
    title: "Processor time per request",
    note: "Milliseconds of all our processes and the programs that they started (under jaild), per request.",
    head: ["scenario", "total", ...components],
    rows: result.cpu.map((row) => [
      row.name,
      row.total.toFixed(1),
      ...components.map((component) => (row.components[component] ?? 0).toFixed(1)),
    ]),
  };
}

function memoryTable({ memory }: Measured): Table {
  const rows = Object.entries(memory?.idleMib ?? {}).map(([name, mib]) => [
    name,
    mib.toFixed(0),
    (memory?.afterLoadMib[name] ?? 0).toFixed(0),
  ]);
  const total = (byName: Record<string, number> = {}) => sum(Object.values(byName)).toFixed(0);
  return {
    title: "Memory when idle",
    note: "Proportional set size in MiB, with templates and the jails that wait, when all is quiet: after the start, and two minutes after all that was measured.",
    head: ["component", "MiB", "MiB after load"],
    rows: rows.length === 0 ? [] : [...rows, ["total", total(memory?.idleMib), total(memory?.afterLoadMib)]],
  };
}

function programMemoryTable({ memory }: Measured): Table {
  return {
    title: "Memory of programs",
    note: `Proportional set size of all components in MiB while so many programs have imported pandas and sleep. Each further one adds ${(memory?.perProgramMib ?? 0).toFixed(1)} MiB.`,
    head: ["programs", "MiB"],
    rows: (memory?.running ?? []).map(({ programs, mib }) => [String(programs), mib.toFixed(0)]),
  };
}
