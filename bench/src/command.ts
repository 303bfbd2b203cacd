/** `./svc bench`: measures a private copy of the system against bare commands, prints tables, writes results. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { defineCommand } from "@svc/cli/command";
import { rootImage } from "@svc/cli/components";
import { INSTALL_STEPS, install } from "@svc/cli/install/install";
import { systemName } from "@svc/cli/install/packages";
import { ROOT, resolveInstance } from "@svc/cli/instance";
import { wholeNumber } from "@svc/cli/options";
import { type PrivateCopy, startPrivateCopy } from "@svc/cli/private-copy";
import { Problem, USAGE_EXIT_CODE } from "@svc/cli/problem";
import { continueAsRoot } from "@svc/cli/system/root";
import { shown } from "@svc/cli/system/run";
import { Progress } from "@svc/cli/terminal";
import { nearestName } from "@svc/service-kit/config/nearest";
import { VARIABLES } from "@svc/service-kit/config/variables";
import { pssByComponent } from "./accounting.ts";
import { BARE, buildSpawner, Spawner } from "./bare.ts";
import { measureFiles } from "./files/measure.ts";
import { languagesPage, measureLanguages } from "./languages.ts";
import { type FileRef, LoadClient } from "./load-client.ts";
import {
  burst,
  type Case,
  type CpuRow,
  closedLoops,
  cpuPerRequest,
  interleaved,
  type LoadRow,
  timed,
} from "./measure.ts";
import { numbersPage, numbersPlot, PLOT } from "./page.ts";
import { measurePaused } from "./programmatic/paused.ts";
import { TOOL_SCENARIOS } from "./programmatic/scenarios.ts";
import { loadOfMachine, type Result, readConditions, readResult } from "./result.ts";
import { LOAD_SCENARIOS, SCENARIOS, type Scenario } from "./scenarios.ts";
import { round, summarize } from "./statistics.ts";
import { asText, comparisonTable, tablesOf } from "./tables.ts";

const OPTIONS = {
  n: { value: "N", doc: "Samples of a light scenario (default 200); heavy ones take a share of it." },
  json: { value: "FILE", doc: "Write the result with its conditions as JSON." },
  compare: { doc: "Compare two results instead: --compare BEFORE AFTER." },
  languages: { doc: "Measure a hello in every language and write docs/languages.md instead." },
  page: { doc: "Write docs/numbers.md from results instead: --page RESULT…" },
} as const;

const DEFAULT_N = 200;

/** Settings of the measured copy: no limits per caller that matter, and as many Python programs at once as there are slots. */
const ENVIRONMENT = {
  PYTHON_CONCURRENCY: "8",
  MAX_REQUESTS: "1000000",
  PTC_RESUME_MAX_REQUESTS: "1000000",
  UPLOAD_MAX_REQUESTS: "1000000",
  DOWNLOAD_MAX_REQUESTS: "1000000",
  SVC_MAX_CONCURRENT_EXECUTIONS: "1000",
  SANDBOX_QUEUE_LIMIT: "64",
} as const;

const EVERY_SCENARIO: readonly Scenario[] = [...SCENARIOS, ...TOOL_SCENARIOS];

/** Names for several. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  programmatic: ["hello-python", "hello-bash", ...TOOL_SCENARIOS.map(({ name }) => name), "paused"],
};

export const bench = defineCommand({
  usage: "bench [SCENARIO…] [--n N] [--json FILE]",
  summary: "Measures the whole service against bare commands on this machine.",
  details: `Scenarios: ${names().join(", ")}. Without a choice: all.`,
  options: OPTIONS,
  run: async ({ values, positionals }) => {
    if (values.compare) return compare(positionals);
    if (values.page) return writePage(positionals);
    if (values.languages) {
      return (await continueAsRoot(process.argv.slice(2), "the jail")) ?? (await writeLanguages());
    }
    const chosen = choose(positionals);
    const n = values.n === undefined ? DEFAULT_N : wholeNumber("n", values.n, 1, 100_000);
    const asRoot = await continueAsRoot(process.argv.slice(2), "the jail");
    if (asRoot !== undefined) return asRoot;
    const progress = new Progress(INSTALL_STEPS + 3);
    const result = await measure(chosen, n, progress);
    for (const table of tablesOf(result)) console.log(`\n${asText(table)}`);
    if (values.json !== undefined) {
      mkdirSync(dirname(resolve(values.json)), { recursive: true });
      writeFileSync(values.json, `${JSON.stringify(result, undefined, 2)}\n`);
    }
    return 0;
  },
});

interface Choice {
  scenarios: readonly Scenario[];
  loads: ReadonlySet<string>;
}

function names(): string[] {
  return [...EVERY_SCENARIO.map(({ name }) => name), ...LOAD_SCENARIOS, ...Object.keys(GROUPS)];
}

function choose(given: readonly string[]): Choice {
  const known = names();
  for (const name of given) {
    if (known.includes(name)) continue;
    throw new Problem(
      `unknown scenario ${name}; did you mean ${nearestName(name, known)}?`,
      undefined,
      USAGE_EXIT_CODE,
    );
  }
  const chosen = new Set(given.flatMap((name) => GROUPS[name] ?? [name]));
  const wanted = (name: string) => given.length === 0 || chosen.has(name);
  return {
    scenarios: EVERY_SCENARIO.filter(({ name }) => wanted(name)),
    loads: new Set(LOAD_SCENARIOS.filter(wanted)),
  };
}

function isWarm(): boolean {
  const { parse, fallback } = VARIABLES.SANDBOX_WARM_START;
  const given = process.env.SANDBOX_WARM_START;
  return given ? parse(given) : fallback;
}

async function measure(choice: Choice, n: number, progress: Progress): Promise<Result> {
  const here = resolveInstance({ "data-dir": undefined, "port-offset": undefined }, process.env);
  const loadBefore = loadOfMachine();
  await install(["run"], here, progress);
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const copy = await progress.step("Starting a private copy", () => startPrivateCopy({ env: ENVIRONMENT }));
  const client = new LoadClient(copy.url);
  const program = buildSpawner(join(folder, "spawner"));
  const spawners = { image: new Spawner(program, rootImage(here)), host: new Spawner(program, "/") };
  try {
    const idleMemoryMib = Object.fromEntries(
      [...pssByComponent(copy.state())].map(([name, mib]) => [name, round(mib)]),
    );
    const prepared = await prepareAll(choice.scenarios, client);
    const latency = await progress.step("One request at a time, interleaved with bare commands", (note) =>
      latencies(choice.scenarios, n, client, spawners, prepared, (done, of) =>
        note(`round ${done} of ${of}`),
      ),
    );
    const rest = await progress.step("Processor time and load", () =>
      blocks(choice, n, copy, client, prepared, folder),
    );
    return {
      version: 1,
      date: new Date().toISOString(),
      command: shown(["./svc", ...process.argv.slice(2)]),
      mode: `local (./svc up), a new jail for each run, ${isWarm() ? "Python starts warm" : "interpreters start cold"}`,
      n,
      conditions: readConditions(here.packagesDir, systemName(), loadBefore),
      ...latency,
      ...rest,
      idleMemoryMib,
    };
  } finally {
    client.close();
    for (const spawner of Object.values(spawners)) spawner.close();
    rmSync(folder, { recursive: true });
    await copy.stop();
  }
}

type Prepared = ReadonlyMap<string, readonly FileRef[]>;

async function prepareAll(scenarios: readonly Scenario[], client: LoadClient): Promise<Prepared> {
  const prepared = new Map<string, readonly FileRef[]>();
  for (const { name, prepare } of scenarios) prepared.set(name, (await prepare?.(client)) ?? []);
  return prepared;
}

async function latencies(
  scenarios: readonly Scenario[],
  n: number,
  client: LoadClient,
  spawners: Record<"image" | "host", Spawner>,
  prepared: Prepared,
  onRound: (done: number, of: number) => void,
): Promise<Pick<Result, "bare" | "bareCpuMs" | "scenarios">> {
  const cpu = new Map<string, number[]>();
  const needed = new Set(["true", "host-python", ...scenarios.map(({ bare }) => bare)]);
  const bareCases = BARE.filter(({ name }) => needed.has(name)).map(
    ({ name, where, command, share }): Case => {
      const times: number[] = [];
      cpu.set(name, times);
      const sample = async () => {
        const { wallMs, cpuMs } = await spawners[where].run(command);
        times.push(cpuMs);
        return wallMs;
      };
      return { name: `bare ${name}`, n: Math.ceil(n * share), sample };
    },
  );
  const serviceCases = scenarios.map((scenario): Case => {
    const files = prepared.get(scenario.name) ?? [];
    return {
      name: scenario.name,
      n: Math.ceil(n * scenario.share),
      sample: () => timed(() => scenario.run(client, files)),
    };
  });
  const summaries = await interleaved([...bareCases, ...serviceCases], onRound);
  const pick = (cases: readonly Case[], prefix: string) =>
    Object.fromEntries(
      cases.flatMap(({ name }) => {
        const summary = summaries.get(name);
        return summary === undefined ? [] : [[name.slice(prefix.length), summary]];
      }),
    );
  return {
    bare: pick(bareCases, "bare "),
    bareCpuMs: Object.fromEntries([...cpu].map(([name, times]) => [name, summarize(times).p50])),
    scenarios: pick(serviceCases, ""),
  };
}

async function blocks(
  choice: Choice,
  n: number,
  copy: PrivateCopy,
  client: LoadClient,
  prepared: Prepared,
  folder: string,
): Promise<Pick<Result, "cpu" | "loads" | "files" | "paused">> {
  const cpu: CpuRow[] = [];
  for (const scenario of choice.scenarios) {
    const least = Math.min(10, Math.ceil(50 * scenario.share));
    const requests = Math.max(least, Math.ceil((n * scenario.share) / 2));
    cpu.push(await cpuPerRequest(copy, client, scenario, prepared.get(scenario.name) ?? [], requests));
  }
  const loads: LoadRow[] = [];
  if (choice.loads.has("concurrency")) loads.push(...(await closedLoops(client, n * 2)));
  if (choice.loads.has("burst")) loads.push(await burst(client));
  return {
    cpu,
    loads,
    ...(choice.loads.has("paused") ? { paused: await measurePaused(copy, client) } : {}),
    ...(choice.loads.has("files")
      ? { files: await measureFiles(copy, client, folder, Math.max(5, Math.ceil(n / 10))) }
      : {}),
  };
}

function compare(paths: readonly string[]): number {
  const [before, after] = paths;
  if (before === undefined || after === undefined || paths.length !== 2) {
    throw new Problem(
      "two results are needed: ./svc bench --compare BEFORE AFTER",
      undefined,
      USAGE_EXIT_CODE,
    );
  }
  console.log(asText(comparisonTable(readResult(before), readResult(after))));
  return 0;
}

function writePage(paths: readonly string[]): number {
  if (paths.length === 0) throw new Problem("a result is needed", undefined, USAGE_EXIT_CODE);
  const sources = paths.map((path) => ({
    result: readResult(path),
    path: relative(ROOT, resolve(path)),
  }));
  const folder = join(ROOT, "docs");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "numbers.md"), numbersPage(sources));
  const plot = numbersPlot(sources);
  if (plot !== undefined) writeFileSync(join(folder, PLOT), plot);
  console.log(`Written: ${join(folder, "numbers.md")}`);
  return 0;
}

async function writeLanguages(): Promise<number> {
  const env = {
    ...ENVIRONMENT,
    SANDBOX_WARM_START: "off",
    SVC_LANGUAGES: "all",
    SANDBOX_PACKAGES_DIRECTORY: join(ROOT, ".pkgs-all"),
  };
  const page = join(ROOT, "docs/languages.md");
  const loadBefore = loadOfMachine();
  const copy = await startPrivateCopy({ env });
  try {
    const rows = await measureLanguages(copy);
    const conditions = readConditions(copy.instance.packagesDir, systemName(), loadBefore);
    writeFileSync(page, languagesPage(rows, conditions));
  } finally {
    await copy.stop();
  }
  console.log(`Written: ${page}`);
  return 0;
}
