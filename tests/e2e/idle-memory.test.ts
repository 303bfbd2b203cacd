/** What the whole system holds in memory: while nobody asks, after work, and for each program that runs. */
import { setTimeout as sleep } from "node:timers/promises";
import { Api } from "@svc/test-kit/system/api";
import { memoryMiB } from "@svc/test-kit/system/consumption";
import { STEADY_POOL, treeOf, untilWarm } from "@svc/test-kit/system/holdings";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { openStream } from "@svc/test-kit/system/streams";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { expect, onTestFinished, test } from "vitest";

/** Of all components, zygotes and waiting jails together. */
const MOST_IDLE_MIB = 350;
/** Of a program that has imported pandas, before it has data. */
const MOST_PER_PROGRAM_MIB = 25;
const PROGRAMS = 5;
const RUNS = 200;
/** V8 returns memory in pauses, which come later on a machine that does other work. */
const PATIENCE_MS = 180_000;
/** Tells that it has imported pandas, and waits for its end. */
const PANDAS = "import pandas, time\nprint('imported', flush=True)\ntime.sleep(50)\n";

async function start(env: Record<string, string>): Promise<System> {
  const system = await startSystem({ env: { ...OPEN_LIMITS, SANDBOX_MAX_CONCURRENT_JOBS: "8", ...env } });
  onTestFinished(async () => expect(await system.stop()).toEqual([]));
  return system;
}

const totalMib = (system: System) =>
  memoryMiB(system.state().components.flatMap(({ process }) => (process ? treeOf(process.pid) : [])));

/** The memory when it has come down to the bound, or the last that was seen. */
async function restingMib(system: System): Promise<number> {
  const end = performance.now() + PATIENCE_MS;
  let seen = totalMib(system);
  while (seen > MOST_IDLE_MIB && performance.now() < end) {
    await sleep(1000);
    seen = totalMib(system);
  }
  return seen;
}

async function work({ url }: System): Promise<void> {
  const api = new Api(url);
  for (let run = 0; run < RUNS; run += 4) {
    const answers = await Promise.all([1, 2, 3, 4].map(() => api.exec({ lang: "py", code: "print(1)" })));
    expect(answers.map(({ stdout }) => stdout)).toEqual(["1\n", "1\n", "1\n", "1\n"]);
  }
}

test("an idle system is small, and is so again after it has worked", { timeout: 300_000 }, async () => {
  const system = await start({});
  expect(await restingMib(system)).toBeLessThan(MOST_IDLE_MIB);
  await work(system);
  expect(await restingMib(system)).toBeLessThan(MOST_IDLE_MIB);
});

test("each further program with pandas adds little", async () => {
  const system = await start(STEADY_POOL);
  const left = new AbortController();
  onTestFinished(() => left.abort());
  const run = async () => {
    const stream = await openStream(system.url, "/exec", { lang: "py", code: PANDAS }, left);
    await stream.until(({ event }) => event === "stdout");
  };
  // Of jaild and all jails: what the components in JavaScript free meanwhile would hide what a program adds.
  const jailsMib = async () => {
    await untilWarm(system);
    return memoryMiB(treeOf(system.pid("jaild")));
  };
  await run();
  const one = await jailsMib();
  await Promise.all(Array.from({ length: PROGRAMS }, run));
  const perProgram = ((await jailsMib()) - one) / PROGRAMS;
  expect(perProgram).toBeGreaterThan(0);
  expect(perProgram).toBeLessThan(MOST_PER_PROGRAM_MIB);
});
