/**
 * Takes the samples. What is compared with each other is a group: its cases take short turns right after each other, in a
 * random order each time, so that a slow moment of the machine hits all of them. Within a turn one case runs alone, as it
 * does where it is used; what says so alternates sample by sample. Groups take turns too, so that none has the machine's better hour. Loads and processor time are
 * taken in blocks of their own afterwards.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { PrivateCopy } from "@svc/cli/private-copy";
import { cpuByComponent } from "./accounting.ts";
import type { FileRef, LoadClient } from "./load-client.ts";
import type { Scenario } from "./scenarios.ts";
import { round, type Summary, shuffled, sum, summarize } from "./statistics.ts";

export interface Case {
  name: string;
  /** Samples to take. */
  n: number;
  /** Runs before the first sample, of a case with as many samples as any. */
  warmUp: number;
  /** Runs once and answers its milliseconds. */
  sample: () => Promise<number>;
}

/** What is compared with each other. */
export interface Group {
  cases: readonly Case[];
  /** Its turns are of one sample each. */
  alternates: boolean;
}

/** Turns of each case. */
export const TURNS = 10;

/** Samples of all cases, and the milliseconds of the runs before them, which come in the order of the cases. */
export async function interleaved(
  groups: readonly Group[],
  onTurn: (done: number) => void,
): Promise<{ summaries: Map<string, Summary>; warmUps: Map<string, number[]> }> {
  const cases = groups.flatMap((group) => group.cases);
  const samples = new Map<string, number[]>(cases.map(({ name }) => [name, []]));
  const most = Math.max(...cases.map(({ n }) => n));
  const warmUps = new Map<string, number[]>();
  for (const { name, n, warmUp, sample } of cases) {
    const times: number[] = [];
    while (times.length < (warmUp * n) / most) times.push(await sample());
    warmUps.set(name, times);
  }
  for (let turn = 1; turn <= TURNS; turn++) {
    for (const { cases: compared, alternates } of shuffled(groups)) {
      const open = shuffled(compared).map(({ name, n, sample }) => {
        const taken = samples.get(name) ?? [];
        return { taken, until: Math.floor((turn * n) / TURNS), sample };
      });
      while (open.some(({ taken, until }) => taken.length < until)) {
        for (const { taken, until, sample } of open) {
          const turnEnd = alternates ? Math.min(until, taken.length + 1) : until;
          while (taken.length < turnEnd) taken.push(await sample());
        }
      }
    }
    onTurn(turn);
  }
  return { summaries: new Map([...samples].map(([name, values]) => [name, summarize(values)])), warmUps };
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

export interface CpuRow {
  name: string;
  requests: number;
  /** Processor milliseconds per request, by component and in all. */
  components: Record<string, number>;
  total: number;
  /** The total of each part of the block, in the order in which they were taken: how much it varies. */
  parts: number[];
}

const SETTLE_MS = 100;

const PARTS = 5;

/** Processor time of one request: a block of requests, divided. What is made for the next request is counted too. */
export async function cpuPerRequest(
  copy: PrivateCopy,
  client: LoadClient,
  scenario: Scenario,
  prepared: readonly FileRef[],
  requests: number,
): Promise<CpuRow> {
  const perPart = Math.ceil(requests / PARTS);
  await sleep(SETTLE_MS);
  const read = async () => {
    await sleep(SETTLE_MS);
    return cpuByComponent(copy.state());
  };
  const before = await read();
  const parts: number[] = [];
  let after = before;
  for (let part = 0; part < PARTS; part++) {
    const start = sum(after.values());
    for (let count = 0; count < perPart; count++) await scenario.run(client, prepared);
    after = await read();
    parts.push(round((sum(after.values()) - start) / perPart));
  }
  const components = Object.fromEntries(
    [...after].map(([name, ms]) => [name, round((ms - (before.get(name) ?? 0)) / (PARTS * perPart))]),
  );
  return {
    name: scenario.name,
    requests: PARTS * perPart,
    components,
    total: round(sum(Object.values(components))),
    parts,
  };
}
