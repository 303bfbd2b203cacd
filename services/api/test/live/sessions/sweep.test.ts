/** The sweep of snapshots with a real Redis, before storage that refuses some deletions. */

import { startSweep } from "@svc/api/sessions/sweep";
import { namespaceOf, newId } from "@svc/contracts";
import type { Log } from "@svc/service-kit";
import { SessionStore } from "@svc/session-store";
import { startRedis } from "@svc/test-kit/components/redis";
import { Redis } from "ioredis";
import { expect, onTestFinished, test, vi } from "vitest";

const SNAPSHOTS = "svc:sessions:snapshots";
const INTERVAL_S = 3600;
const NAMESPACE = namespaceOf({ tenantId: "t", userId: "u" }, { kind: "user" });
const COUNT = 1300;
/** More than one step of a sweep looks at, and some among those behind them. */
const isStuck = (at: number) => at < 600 || at % 3 === 0;

test("snapshots that cannot be deleted are tried once in a sweep, and keep no others", async () => {
  const { socket, stop } = await startRedis();
  onTestFinished(stop);
  const redis = new Redis(socket);
  onTestFinished(() => redis.disconnect());
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());

  const sessions = Array.from({ length: COUNT }, () => newId());
  const scored = sessions.flatMap((id, at) => [at + 1, `${id}/${newId()}/sessionstate:${NAMESPACE}`]);
  await redis.zadd(SNAPSHOTS, ...scored);
  const stuck = new Set(sessions.filter((_id, at) => isStuck(at)));
  const tried: string[] = [];
  const storage = {
    delete: async ({ session }: { session: string }) => {
      tried.push(session);
      if (stuck.has(session)) throw new Error("storage is away");
    },
  };
  const told = vi.fn();
  const log = { info: told, warn: () => undefined } as unknown as Log;
  const stopSweep = startSweep({
    config: { SVC_SESSION_STATE_SWEEP_SECONDS: INTERVAL_S },
    log,
    redis,
    sessions: new SessionStore(redis, 600, 60_000),
    storage,
  });
  onTestFinished(stopSweep);

  vi.advanceTimersByTime(INTERVAL_S * 1000);
  await expect.poll(() => told.mock.calls.length).toBe(1);
  expect(told.mock.calls[0]).toMatchObject([{ deleted: COUNT - stuck.size }, expect.any(String)]);
  expect(await redis.zcard(SNAPSHOTS)).toBe(stuck.size);
  expect(tried).toEqual(sessions);
});
