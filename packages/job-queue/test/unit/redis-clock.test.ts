import { EventEmitter } from "node:events";
import type { Redis } from "@svc/service-kit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RedisClock } from "../../src/redis-clock.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

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
