/**
 * Takes the samples. Interleaved: every round runs all cases once in a random order, so that a slow moment of the machine
 * hits all of them. Loads and processor time are taken in blocks of their own afterwards.
 */
import type { PrivateCopy } from "@svc/cli/private-copy";
import { cpuByComponent } from "./accounting.ts";
import type { FileRef, LoadClient } from "./load-client.ts";
import { BURST, CONCURRENCY, HELLO, type Scenario } from "./scenarios.ts";
import { round, type Summary, shuffled, summarize } from "./statistics.ts";

export interface Case {
  name: string;
  /** Samples to take. */
  n: number;
  /** Runs once and answers its milliseconds. */
  sample: () => Promise<number>;
}

const WARM_UP = 5;

/** Rounds of all cases in random order; a case with fewer samples takes part in every k-th round only. */
export async function interleaved(cases: readonly Case[], onRound: (done: number, of: number) => void) {
  const samples = new Map<string, number[]>(cases.map(({ name }) => [name, []]));
  const rounds = Math.max(...cases.map(({ n }) => n));
  for (const { n, sample } of cases) {
    for (let count = 0; count < (WARM_UP * n) / rounds; count++) await sample();
  }
  for (let index = 0; index < rounds; index++) {
    for (const { name, n, sample } of shuffled(cases)) {
      if (Math.floor(((index + 1) * n) / rounds) > Math.floor((index * n) / rounds)) {
        samples.get(name)?.push(await sample());
      }
    }
    onRound(index + 1, rounds);
  }
  return new Map([...samples].map(([name, values]) => [name, summarize(values)]));
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

export interface LoadRow {
  name: string;
  inFlight: number;
  requests: number;
  perSecond: number;
  latency: Summary;
  errors: number;
}

/** A closed loop: each of k clients sends its next request when it has the answer of the last. */
export async function closedLoops(client: LoadClient, requests: number): Promise<LoadRow[]> {
  const rows: LoadRow[] = [];
  for (const inFlight of CONCURRENCY) {
    rows.push(await load(client, `concurrency ${inFlight}`, inFlight, requests));
  }
  return rows;
}

/** All requests at once. */
export function burst(client: LoadClient): Promise<LoadRow> {
  return load(client, "burst", BURST, BURST);
}

async function load(client: LoadClient, name: string, inFlight: number, requests: number): Promise<LoadRow> {
  const latencies: number[] = [];
  let errors = 0;
  let left = requests;
  const one = async () => {
    while (left-- > 0) {
      try {
        latencies.push(await timed(() => client.exec("py", HELLO.python, "1\n")));
      } catch {
        errors++;
      }
    }
  };
  const elapsed = await timed(() => Promise.all(Array.from({ length: inFlight }, one)));
  const perSecond = round((latencies.length / elapsed) * 1000);
  return { name, inFlight, requests, perSecond, latency: summarize(latencies), errors };
}

export interface CpuRow {
  name: string;
  requests: number;
  /** Processor milliseconds per request, by component and in all. */
  components: Record<string, number>;
  total: number;
}

const SETTLE_MS = 300;

/** Processor time of one request: a block of requests, divided. */
export async function cpuPerRequest(
  copy: PrivateCopy,
  client: LoadClient,
  scenario: Scenario,
  prepared: readonly FileRef[],
  requests: number,
): Promise<CpuRow> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const before = cpuByComponent(copy.state());
  for (let count = 0; count < requests; count++) await scenario.run(client, prepared);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const after = cpuByComponent(copy.state());
  const components: Record<string, number> = {};
  for (const [name, ms] of after) components[name] = round((ms - (before.get(name) ?? 0)) / requests);
  const total = round(Object.values(components).reduce((sum, ms) => sum + ms, 0));
  return { name: scenario.name, requests, components, total };
}
