/**
 * Latency of one request at a time, and of the bare commands, in milliseconds. Each kind is measured by itself, and again
 * in between all others. Users who mostly send one kind see the first; after other kinds, a request finds colder caches and
 * code.
 */
import type { Spawner } from "./bare.ts";
import type { FileRef, LoadClient } from "./load-client.ts";
import { timed } from "./measure.ts";
import {
  groupsByThemselves,
  groupsInTurn,
  HELLO_BESIDE_TOOLS,
  HELLO_PYTHON,
  type Planned,
  planOf,
  type Work,
} from "./plan.ts";
import type { Latencies, Measured } from "./result.ts";
import type { Scenario } from "./scenarios.ts";
import type { Mode } from "./settings.ts";
import { quantileOf, type Summary, windowsOf } from "./statistics.ts";
import { BLOCKS_PER_GROUP, byThemselves, type Case, firstRuns, inTurn, TURNS } from "./turns.ts";

export interface Requests {
  mode: Mode;
  scenarios: readonly Scenario[];
  n: number;
  client: LoadClient;
  spawners: Record<"image" | "host", Spawner>;
  prepared: ReadonlyMap<string, readonly FileRef[]>;
}

/** First runs end after this time: by then V8 has compiled nearly everything. */
const MOST_FIRST_RUNS_MS = 20_000;

export async function latencies(
  requests: Requests,
  note: (line: string) => void,
): Promise<Latencies & Pick<Measured, "bareCpuMs" | "afterStart" | "mixed">> {
  const { mode, scenarios, n } = requests;
  const cpu = new Map<string, number[]>();
  const cases = planOf(scenarios, n, mode).map((planned) => ({
    ...planned,
    sample: sampleOf(planned.work, requests, cpu),
  }));
  const first = await firstRuns(cases, MOST_FIRST_RUNS_MS, (name) => note(`first runs of ${name}`));
  cpu.clear();
  const groups = groupsByThemselves(cases);
  const alone = await byThemselves(groups, (done) =>
    note(`each kind by itself, block ${done} of ${BLOCKS_PER_GROUP * groups.length}`),
  );
  const bareCpuMs = Object.fromEntries([...cpu].map(([name, times]) => [name, quantileOf(0.5)(times)]));
  const others = mode === "warm" ? groupsInTurn(cases) : [];
  const onTurn = (done: number) => note(`each kind in between all others, turn ${done} of ${TURNS}`);
  const mixed = others.length === 0 ? undefined : await inTurn(others, onTurn);
  return {
    ...latenciesOf(cases, alone),
    bareCpuMs,
    // The copy had no other requests before these.
    afterStart: windowsOf(first.get(HELLO_PYTHON) ?? []),
    ...(mixed === undefined ? {} : { mixed: latenciesOf(cases, mixed) }),
  };
}

/** Adds the processor time of bare commands to their lists. */
function sampleOf(
  work: Work,
  { client, spawners, prepared }: Requests,
  cpu: Map<string, number[]>,
): Case["sample"] {
  if ("scenario" in work) {
    const { name, run } = work.scenario;
    const files = prepared.get(name) ?? [];
    return () => timed(() => run(client, files));
  }
  const { name, where, command } = work.bare;
  return async () => {
    const { wallMs, cpuMs } = await spawners[where].run(command);
    const times = cpu.get(name) ?? [];
    times.push(cpuMs);
    cpu.set(name, times);
    return wallMs;
  };
}

/** In the order of the cases. */
export function latenciesOf(cases: readonly Planned[], summaries: ReadonlyMap<string, Summary>): Latencies {
  const result: Latencies = { bare: {}, scenarios: {} };
  for (const { name, work } of cases) {
    const summary = summaries.get(name);
    if (summary === undefined) continue;
    if ("bare" in work) result.bare[work.bare.name] = summary;
    else if (name === HELLO_BESIDE_TOOLS) result.helloBesideTools = summary;
    else result.scenarios[name] = summary;
  }
  return result;
}
