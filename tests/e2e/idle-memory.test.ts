/** What the whole system holds in memory: while nobody asks, after work, and for each program that runs. */
import { setTimeout as sleep } from "node:timers/promises";
import { Api } from "@svc/test-kit/system/api";
import { memoryMiB, nameOf } from "@svc/test-kit/system/consumption";
import { treeOf } from "@svc/test-kit/system/holdings";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

/** Of all components, zygotes and waiting jails together. */
const MOST_IDLE_MIB = 350;
/** Of a program that has imported pandas, before it has data. */
const MOST_PER_PROGRAM_MIB = 25;
const PROGRAMS = 5;
const RUNS = 200;
/** V8 returns memory in pauses, which come later on a machine that does other work. */
const PATIENCE_MS = 180_000;
const READY_MS = 40_000;

let system: System;
let api: Api;
beforeAll(async () => {
  system = await startSystem({ env: { ...OPEN_LIMITS, SANDBOX_MAX_CONCURRENT_JOBS: "8" } });
  api = new Api(system.url);
});
afterAll(async () => expect(await system.stop()).toEqual([]));

const processes = () =>
  system.state().components.flatMap(({ process }) => (process ? treeOf(process.pid) : []));
const totalMib = () => memoryMiB(processes());

/** The memory when it has come down to the bound, or the last that was seen. */
async function restingMib(): Promise<number> {
  const end = performance.now() + PATIENCE_MS;
  let seen = totalMib();
  while (seen > MOST_IDLE_MIB && performance.now() < end) {
    await sleep(1000);
    seen = totalMib();
  }
  return seen;
}

async function work(): Promise<void> {
  for (let run = 0; run < RUNS; run += 4) {
    const answers = await Promise.all([1, 2, 3, 4].map(() => api.exec({ lang: "py", code: "print(1)" })));
    expect(answers.map(({ stdout }) => stdout)).toEqual(["1\n", "1\n", "1\n", "1\n"]);
  }
}

test("an idle system is small, and is so again after it has worked", { timeout: 300_000 }, async () => {
  expect(await restingMib()).toBeLessThan(MOST_IDLE_MIB);
  await work();
  expect(await restingMib()).toBeLessThan(MOST_IDLE_MIB);
});

test("each further program with pandas adds little", async () => {
  const interpreters = () =>
    treeOf(system.pid("jaild")).filter((pid) => nameOf(pid).startsWith("python")).length;
  const waiting = interpreters();
  const left = new AbortController();
  const code = "import pandas, time\ntime.sleep(50)\n";
  const run = (count: number) => {
    for (let at = 0; at < count; at++) {
      void api.tryExec({ lang: "py", code }, { signal: left.signal }).catch(() => undefined);
    }
  };
  try {
    run(1);
    await until(async () => interpreters() >= waiting + 1, READY_MS);
    const one = totalMib();
    run(PROGRAMS);
    // They run, and others wait in their places.
    await until(async () => interpreters() >= waiting + 1 + PROGRAMS, READY_MS);
    const perProgram = (totalMib() - one) / PROGRAMS;
    expect(perProgram).toBeGreaterThan(0);
    expect(perProgram).toBeLessThan(MOST_PER_PROGRAM_MIB);
  } finally {
    left.abort();
  }
});
