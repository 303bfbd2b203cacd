/** Times one piece of work, and measures the processor time of requests in blocks of their own. */
import { setTimeout as sleep } from "node:timers/promises";
import type { PrivateCopy } from "@svc/test-kit/system/private-copy";
import { cpuByComponent, isStoreRewriting } from "./accounting.ts";
import type { FileRef, LoadClient } from "./load-client.ts";
import type { Scenario } from "./scenarios.ts";
import { round, sum } from "./statistics.ts";

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
const MOST_REWRITING_MS = 20_000;

const PARTS = 5;

/** Waits until Redis has done its work for earlier requests, so that the next requests are not charged for it. */
async function untilStoreRests(copy: PrivateCopy): Promise<void> {
  const end = performance.now() + MOST_REWRITING_MS;
  do await sleep(SETTLE_MS);
  while (isStoreRewriting(copy.state()) && performance.now() < end);
}

/** Processor time of one request: a block of requests, divided. What is made for the next request is counted too. */
export async function cpuPerRequest(
  copy: PrivateCopy,
  client: LoadClient,
  scenario: Scenario,
  prepared: readonly FileRef[],
  requests: number,
): Promise<CpuRow> {
  const perPart = Math.ceil(requests / PARTS);
  await untilStoreRests(copy);
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
