import { expect, it } from "vitest";
import { ReplayMemory } from "../../src/index.ts";

it("takes each id once, until it could not be used anyway", () => {
  const memory = new ReplayMemory(10);
  expect(memory.use("a", 105, 100)).toBe("noted");
  for (const now of [100, 104, 105]) expect(memory.use("a", 105, now)).toBe("used");
  expect(memory.use("a", 110, 106)).toBe("noted");
});

it("takes nothing more when it is full, and forgets nothing for it", () => {
  const memory = new ReplayMemory(2);
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
  const memory = new ReplayMemory(1_000_000);
  for (let at = 0; at < 20_000; at++) memory.use(`id-${at}`, Math.floor(at / 10) + 30, Math.floor(at / 10));
  expect(memory.size).toBeLessThanOrEqual(310);
});
