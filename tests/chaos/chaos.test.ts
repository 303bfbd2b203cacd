/**
 * Faults of a seed over a whole system under a mixed load of all features. A failure prints its seed and the shortest schedule of
 * faults that was found to fail. CHAOS_SEEDS and CHAOS_SECONDS are set by `./svc test`.
 */
import type { Holdings } from "@svc/test-kit/system/holdings";
import { seedsOf } from "@svc/tools/testing/chaos";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Ran, run, warmedUp } from "./run.ts";
import { described, type Fault, scheduleOf } from "./schedule.ts";
import { shrink } from "./shrink.ts";
import { type ChaosSystem, startChaosSystem } from "./system.ts";

const MOST_ATTEMPTS = 10;
const SECONDS = Number(process.env.CHAOS_SECONDS ?? 30);
const SEEDS = seedsOf(process.env.CHAOS_SEEDS ?? String(Math.floor(Math.random() * 1e9)));

let chaos: ChaosSystem;
let before: Holdings;
let runs = 0;

async function start(): Promise<void> {
  chaos = await startChaosSystem();
  before = await warmedUp(chaos);
}

beforeAll(start);
afterAll(async () => {
  expect(await chaos.stop()).toEqual([]);
});

const once = (seed: number, faults: readonly Fault[]): Promise<Ran> =>
  run(chaos, before, { seed, seconds: SECONDS, faults, name: `${seed}.${++runs}` });

/** What failed may have broken the system for good: the next run has a new one. */
async function fails(seed: number, faults: readonly Fault[]): Promise<string[]> {
  const { violations } = await once(seed, faults);
  if (violations.length > 0) {
    await chaos.stop();
    await start();
  }
  return violations;
}

const listed = (lines: readonly string[]) => lines.map((line) => `  ${line}`).join("\n");

async function explained(seed: number, faults: readonly Fault[], first: readonly string[]): Promise<string> {
  let last = first;
  const again = async (some: readonly Fault[]) => {
    const found = await fails(seed, some);
    if (found.length > 0) last = found;
    return found.length > 0;
  };
  const { items, attempts } = await shrink(faults, again, MOST_ATTEMPTS);
  return `seed ${seed}, ${SECONDS} s: what did not hold
${listed(first)}
the shortest schedule that was found to fail, in ${attempts} attempts, ${items.length} of ${faults.length} faults:
${listed(items.map(described))}
what did not hold then
${listed(last)}
again: ./svc test --chaos --seed ${seed} --seconds ${SECONDS}`;
}

test.each(SEEDS)("chaos of seed %s", async (seed) => {
  const faults = scheduleOf(seed, SECONDS);
  console.log(`seed ${seed}, ${SECONDS} s:\n${listed(faults.map(described))}`);
  const { violations, counts } = await once(seed, faults);
  console.log(`seed ${seed}: ${JSON.stringify(counts, undefined, 1)}`);
  if (violations.length === 0) return;
  console.log(`seed ${seed} failed:\n${listed(violations)}`);
  await chaos.stop();
  await start();
  expect.fail(await explained(seed, faults, violations));
});
