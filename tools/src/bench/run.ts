/** Measures private copies of the system, one for each mode, one after the other. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, isAbsolute, join } from "node:path";
import { rootImage } from "@svc/cli/components";
import { BASE } from "@svc/cli/install/image";
import { INSTALL_STEPS, install } from "@svc/cli/install/install";
import { systemName } from "@svc/cli/install/packages";
import { resolveInstance } from "@svc/cli/instance";
import { shown } from "@svc/cli/system/run";
import { Progress } from "@svc/cli/terminal";
import { type PrivateCopy, startPrivateCopy } from "@svc/test-kit/system/private-copy";
import { buildSpawner, ENVIRONMENT, Spawner } from "./bare.ts";
import { type Choice, inMode } from "./choice.ts";
import { measureFiles } from "./files/measure.ts";
import { latencies, type Requests } from "./latency.ts";
import { type FileRef, LoadClient } from "./load-client.ts";
import { bursts, sustained } from "./loads.ts";
import { type CpuRow, cpuPerRequest, timed } from "./measure.ts";
import { idleMemory, memoryOfPrograms } from "./memory.ts";
import { warmUpRuns } from "./plan.ts";
import { measurePaused } from "./programmatic/paused.ts";
import {
  loadOfMachine,
  type Measured,
  type Origin,
  type Result,
  readConditions,
  VERSIONS,
} from "./result.ts";
import type { Scenario } from "./scenarios.ts";
import { measureSessions } from "./sessions/measure.ts";
import { type Mode, settingsOf } from "./settings.ts";
import { warmUp } from "./turns.ts";

const STEPS_PER_MODE = 3;

/** Installs what copies need, and begins a result. `end` completes it. */
export async function begin(steps: number): Promise<{ progress: Progress; end: () => Origin }> {
  const start = performance.now();
  const loadBefore = loadOfMachine();
  const date = new Date().toISOString();
  const progress = new Progress(INSTALL_STEPS + steps);
  const here = resolveInstance({ "data-dir": undefined, "port-offset": undefined }, process.env);
  await install(["run"], here, progress, { choice: BASE });
  // Before anything is measured, so that conditions that cannot be read end the command at once.
  const conditions = readConditions(here.packagesDir, systemName(), loadBefore);
  const end = (): Origin => ({
    date,
    // Without folders: the place of a result says nothing about it.
    command: shown([
      "./svc",
      ...process.argv.slice(2).map((word) => (isAbsolute(word) ? basename(word) : word)),
    ]),
    seconds: Math.round((performance.now() - start) / 1000),
    conditions,
  });
  return { progress, end };
}

export async function measure(choice: Choice, n: number): Promise<Result> {
  const parts = choice.modes.map((mode) => ({ mode, ...inMode(choice, mode) }));
  const withSessions = parts.filter(({ blocks }) => blocks.has("sessions")).length;
  const { progress, end } = await begin(STEPS_PER_MODE * parts.length + withSessions);
  const modes: Result["modes"] = {};
  for (const { mode, scenarios, blocks } of parts) {
    const ofCopy = new Set([...blocks].filter((block) => block !== "sessions"));
    const measured = await measureMode(mode, { scenarios, blocks: ofCopy }, n, progress);
    modes[mode] = measured;
    if (!blocks.has("sessions")) continue;
    measured.sessions = await progress.step("Sessions, on two copies of their own", (note) =>
      measureSessions(mode, n, note),
    );
  }
  const settings = Object.fromEntries(choice.modes.map((mode) => [mode, settingsOf(mode)]));
  return { version: VERSIONS.bench, ...end(), kind: "bench", n, settings, modes };
}

/** What the measurements of one mode need. */
interface Stage extends Requests {
  copy: PrivateCopy;
  folder: string;
}

async function measureMode(
  mode: Mode,
  { scenarios, blocks }: Omit<Choice, "modes">,
  n: number,
  progress: Progress,
): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const copy = await progress.step(`Starting a private copy (${mode})`, () =>
    startPrivateCopy({ env: settingsOf(mode) }),
  );
  const client = new LoadClient(copy.url);
  const program = buildSpawner(join(folder, "spawner"));
  const spawners = {
    image: new Spawner(program, rootImage(copy.instance), ENVIRONMENT),
    host: new Spawner(program, "/", ENVIRONMENT),
  };
  try {
    const idleMib = blocks.has("memory") ? await idleMemory(copy, "start") : {};
    const prepared = await prepareAll(scenarios, client);
    const stage = { mode, scenarios, n, copy, client, spawners, prepared, folder };
    const latency = await progress.step("One request at a time, in turn with bare commands", (note) =>
      latencies(stage, note),
    );
    return await progress.step("Processor time, load, memory", async (note) => ({
      ...latency,
      cpu: await processorTime(stage, note),
      ...(await measureBlocks(stage, blocks, idleMib, note)),
    }));
  } finally {
    client.close();
    for (const spawner of Object.values(spawners)) spawner.close();
    rmSync(folder, { recursive: true });
    await copy.stop();
  }
}

async function prepareAll(scenarios: readonly Scenario[], client: LoadClient): Promise<Stage["prepared"]> {
  const prepared = new Map<string, readonly FileRef[]>();
  for (const { name, prepare } of scenarios) prepared.set(name, (await prepare?.(client)) ?? []);
  return prepared;
}

async function processorTime(
  { mode, scenarios, n, copy, client, prepared }: Stage,
  note: (line: string) => void,
): Promise<CpuRow[]> {
  const rows: CpuRow[] = [];
  for (const scenario of scenarios) {
    note(scenario.name);
    const least = Math.min(10, Math.ceil(50 * scenario.share));
    const requests = Math.max(least, Math.ceil((n * scenario.share) / 2));
    const files = prepared.get(scenario.name) ?? [];
    await warmUp({
      sample: () => timed(() => scenario.run(client, files)),
      warmUp: warmUpRuns(scenario, mode),
    });
    rows.push(await cpuPerRequest(copy, client, scenario, files, requests));
  }
  return rows;
}

async function measureBlocks(
  { mode, n, copy, client, folder }: Stage,
  blocks: Choice["blocks"],
  idleMib: Record<string, number>,
  note: (line: string) => void,
): Promise<Pick<Measured, "loads" | "burst" | "memory" | "files" | "paused">> {
  const result: Pick<Measured, "loads" | "burst" | "memory" | "files" | "paused"> = { loads: [] };
  for (const block of blocks) {
    note(block);
    if (block === "concurrency") result.loads = await sustained(copy, client, n, mode === "warm");
    if (block === "burst") result.burst = await bursts(client);
    if (block === "files")
      result.files = await measureFiles(copy, client, folder, Math.max(5, Math.ceil(n / 10)));
    if (block === "paused") result.paused = await measurePaused(copy, client);
    if (block === "memory") {
      const programs = await memoryOfPrograms(copy, client);
      result.memory = { idleMib, afterLoadMib: await idleMemory(copy, "work"), ...programs };
    }
  }
  return result;
}
