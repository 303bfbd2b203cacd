/** In a process of its own: the heap of the test runner is never quiet. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const MODULE = fileURLToPath(new URL("../../src/memory/quiet.ts", import.meta.url));
const LOOK_MS = 50;
const MIB = 2 ** 20;
const GROWN_MIB = 40;
/** A process without modules has 5 of them. */
const RESTING_MIB = 10;

/** Runs the statements where `heap()` is the heap's size in MiB, `whole` all collections of the whole heap so far, and `until` waits
 * for a condition; answers what they print. */
function run(statements: string): unknown {
  const program = `
    import { getHeapStatistics } from "node:v8";
    import { setTimeout as sleep } from "node:timers/promises";
    import { PerformanceObserver } from "node:perf_hooks";
    import { returnMemoryWhenQuiet } from ${JSON.stringify(MODULE)};
    const whole = [];
    new PerformanceObserver((list) => whole.push(...list.getEntries().filter(({ detail }) => detail.kind === 4)))
      .observe({ entryTypes: ["gc"] });
    const heap = () => getHeapStatistics().total_physical_size / ${MIB};
    const until = async (condition) => { while (!condition()) await sleep(${LOOK_MS}); };
    const grow = () => {
      const kept = [];
      while (heap() < ${GROWN_MIB}) kept.push(Array.from({ length: 10_000 }, (_, index) => ({ index })));
    };
    ${statements}`;
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", program], {
    encoding: "utf8",
    timeout: 50_000,
  });
  return JSON.parse(output);
}

test("a quiet process gives back what its start and its work have taken", () => {
  const rested = run(`
    grow();
    returnMemoryWhenQuiet(${LOOK_MS});
    await until(() => heap() < ${RESTING_MIB});
    grow();
    await until(() => heap() < ${RESTING_MIB});
    console.log(true);`);
  expect(rested).toBe(true);
});

test("a process that pauses after work of longer than its start is let be", () => {
  const collections = run(`
    const busy = setInterval(() => { const end = performance.now() + 20; while (performance.now() < end); }, 25);
    returnMemoryWhenQuiet(${LOOK_MS});
    await sleep(${LOOK_MS * 20});
    clearInterval(busy);
    grow();
    await sleep(${LOOK_MS});
    const before = whole.length;
    await sleep(${LOOK_MS * 40});
    console.log(JSON.stringify(whole.length - before));`);
  expect(collections).toBe(0);
});

test("a process that works all the time, or has not grown, is not stopped", () => {
  const collections = run(`
    const busy = setInterval(() => { const end = performance.now() + 20; while (performance.now() < end); }, 25);
    returnMemoryWhenQuiet(${LOOK_MS});
    await sleep(${LOOK_MS * 20});
    const whileBusy = whole.length;
    clearInterval(busy);
    await until(() => whole.length > 0);
    await sleep(${LOOK_MS});
    const first = whole.length;
    await sleep(${LOOK_MS * 40});
    console.log(JSON.stringify({ whileBusy, first, later: whole.length }));`) as Record<string, number>;
  expect(collections.whileBusy).toBe(0);
  expect(collections.later).toBe(collections.first);
});

test("nothing keeps the process alive", () => {
  expect(run("returnMemoryWhenQuiet(50); console.log(1);")).toBe(1);
});
