import { EventEmitter } from "node:events";
import type { Redis } from "@svc/service-kit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RedisClock } from "../../src/redis-clock.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("an answer that the own clock explains changes nothing, however long it takes; others do, and no more than they must", async () => {
  let [tookMs, aheadMs] = [200, 0];
  // Redis looks at its clock in the middle.
  const time = async () => {
    await new Promise((resolve) => setTimeout(resolve, tookMs / 2));
    const ms = performance.timeOrigin + performance.now() + aheadMs;
    await new Promise((resolve) => setTimeout(resolve, tookMs / 2));
    return [Math.floor(ms / 1000), (ms % 1000) * 1000];
  };
  const redis = Object.assign(new EventEmitter(), { status: "connecting", time });
  const clock = new RedisClock(redis as unknown as Redis);
  const ahead = () => clock.now() - performance.timeOrigin - performance.now();
  const ask = async () => {
    redis.emit("ready");
    await vi.advanceTimersByTimeAsync(1000);
    return ahead();
  };
  expect(await ask()).toBe(0);
  [tookMs, aheadMs] = [20, 500];
  expect(await ask()).toBeCloseTo(490, 1);
  [tookMs, aheadMs] = [100, 520];
  expect(await ask()).toBeCloseTo(490, 1);
  [tookMs, aheadMs] = [20, -500];
  expect(await ask()).toBeCloseTo(-490, 1);
});

test("a clock of Redis that is set is followed within a minute, by one question", async () => {
  let aheadMs = 3_600_000;
  const time = vi.fn(async () => {
    const ms = Date.now() + aheadMs;
    return [Math.floor(ms / 1000), (ms % 1000) * 1000];
  });
  const clock = new RedisClock(
    Object.assign(new EventEmitter(), { status: "ready", time }) as unknown as Redis,
  );
  const ahead = () => Math.round((clock.now() - Date.now()) / 1000);
  await vi.advanceTimersByTimeAsync(1000);
  expect(ahead()).toBe(3600);
  aheadMs = -600_000;
  await vi.advanceTimersByTimeAsync(50_000);
  expect([ahead(), time.mock.calls.length]).toEqual([3600, 1]);
  await vi.advanceTimersByTimeAsync(10_000);
  for (let calls = 0; calls < 5; calls++) clock.now();
  await vi.advanceTimersByTimeAsync(1000);
  expect([ahead(), time.mock.calls.length]).toEqual([-600, 2]);
});
