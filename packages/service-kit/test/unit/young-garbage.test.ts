import { constants, PerformanceObserver } from "node:perf_hooks";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { noteMovedBytes } from "../../src/index.ts";

const MIB = 2 ** 20;
let asked: number[] = [];
const observer = new PerformanceObserver((list) => {
  for (const { detail } of list.getEntries()) {
    const { kind, flags } = detail as { kind: number; flags: number };
    if (flags === constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) asked.push(kind);
  }
});
beforeEach(() => {
  asked = [];
  observer.observe({ entryTypes: ["gc"] });
});
afterEach(() => observer.disconnect());

async function afterMoving(...amounts: readonly number[]): Promise<number[]> {
  for (const bytes of amounts) noteMovedBytes(bytes);
  for (let turns = 0; turns < 10; turns++) await turn();
  return asked;
}

test("a young collection is asked for every 16 MiB, and never a full one", async () => {
  expect(await afterMoving(15 * MIB)).toEqual([]);
  expect(await afterMoving(MIB)).toEqual([constants.NODE_PERFORMANCE_GC_MINOR]);
  expect(await afterMoving(15 * MIB, MIB, 20 * MIB)).toEqual(
    new Array(3).fill(constants.NODE_PERFORMANCE_GC_MINOR),
  );
});

test("no other code gets the collector", async () => {
  await afterMoving(16 * MIB);
  expect(Reflect.get(globalThis, "gc")).toBe(undefined);
});
