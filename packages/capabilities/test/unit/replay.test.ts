import { expect, it } from "vitest";
import { ReplayMemory } from "../../src/index.ts";

/** With a clock that nobody sets. */
function memoryOf(limit: number) {
  const memory = new ReplayMemory(limit);
  return {
    use: (id: string, end: number, now: number) => memory.use(id, end, now, now),
    get size() {
      return memory.size;
    },
  };
}

it("takes each id once, until it could not be used anyway", () => {
  const memory = memoryOf(10);
  expect(memory.use("a", 105, 100)).toBe("noted");
  for (const now of [100, 104, 105]) expect(memory.use("a", 105, now)).toBe("used");
  expect(memory.use("a", 110, 106)).toBe("noted");
});

it("takes nothing more when it is full, and forgets nothing for it", () => {
  const memory = memoryOf(2);
  expect([memory.use("a", 101, 100), memory.use("b", 200, 100), memory.use("c", 200, 100)]).toEqual([
    "noted",
    "noted",
    "full",
  ]);
  expect([memory.use("a", 101, 101), memory.use("b", 200, 101), memory.use("c", 200, 102)]).toEqual([
    "used",
    "used",
    "noted",
  ]);
});

it("holds no more than what can still be used", () => {
  const memory = memoryOf(1_000_000);
  for (let at = 0; at < 20_000; at++) memory.use(`id-${at}`, Math.floor(at / 10) + 30, Math.floor(at / 10));
  expect(memory.size).toBeLessThanOrEqual(310);
});

it.each([
  ["ahead and back", 3600],
  ["back and ahead", -3600],
])("forgets nothing because the clock was set %s", (_what, step) => {
  const memory = new ReplayMemory(10);
  expect(memory.use("a", 5105, 5100, 0)).toBe("noted");
  memory.use("b", 5105 + step, 5101 + step, 1);
  expect(memory.use("a", 5105, 5102, 2)).toBe("used");
  expect(memory.use("a", 5105, 5105, 5)).toBe("used");
  memory.use("c", 9000, 5106, 6);
  expect(memory.size).toBe(step > 0 ? 2 : 1);
});

it("forgets after a clock that stays ahead what has had its time", () => {
  const memory = new ReplayMemory(10);
  memory.use("a", 105, 100, 0);
  memory.use("b", 9000, 8000, 1);
  expect(memory.size).toBe(2);
  memory.use("c", 9000, 8010, 6);
  expect(memory.size).toBe(2);
});
