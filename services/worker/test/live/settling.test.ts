/** What an answer says of a session's state is so, also when Redis was away while the state was settled. */
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "@svc/contracts";
import { createLog, createRegistry, loadConfig } from "@svc/service-kit";
import { type Left, SessionStore } from "@svc/session-store";
import { jobOf } from "@svc/test-kit/components/messages";
import { startRedis } from "@svc/test-kit/components/redis";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { sessionMetrics } from "../../src/sessions/metrics.ts";
import { Sessions } from "../../src/sessions/sessions.ts";

const RUN_MS = 60_000;
/** Long enough for four calls that are given up, and the pauses between them. */
const OUTAGE_MS = 4000;
const COMMAND_MS = 300;
const stored: Left = { kind: "stored", size: 7 };
const never = new AbortController().signal;

/** Sessions over a Redis that is on disk, by a connection that gives up commands sooner than a worker's. */
async function start() {
  // Each change is written before it is answered, never later, as it would be while the disk is slow to flush.
  const server = await startRedis({ kept: true, further: ["--appendfsync", "no"] });
  const redis = new Redis(server.socket, {
    commandTimeout: COMMAND_MS,
    maxRetriesPerRequest: 20,
    retryStrategy: () => 100,
  }).on("error", () => undefined);
  onTestFinished(async () => {
    redis.disconnect();
    await server.stop();
  });
  const config = loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
  });
  const store = new SessionStore(redis, 600, RUN_MS);
  const sessions = new Sessions(store, createLog("worker", config), sessionMetrics(createRegistry()));
  const begin = async () => {
    const run = await sessions.begin(jobOf({ session: {}, session_id: newId() }));
    if (run === undefined) throw new Error("no run has begun");
    return run;
  };
  return { server, redis, sessions, begin };
}
type Made = Awaited<ReturnType<typeof start>>;

async function whileStopped({ server }: Made, work: () => Promise<unknown>): Promise<void> {
  process.kill(server.pid, "SIGSTOP");
  await work();
  process.kill(server.pid, "SIGCONT");
}

async function whileKilled({ server }: Made, work: () => Promise<unknown>): Promise<void> {
  await server.kill();
  await work();
  await server.start();
}

it.each([
  ["stands still", whileStopped],
  ["is killed", whileKilled],
])("a state that is settled while Redis %s is current, and the answer says so", async (_what, without) => {
  const made = await start();
  const { sessions, begin } = made;
  const run = await begin();
  let settled: Promise<unknown> = Promise.resolve();
  await without(made, () => {
    settled = sessions.settle(run, stored, "request", never);
    return sleep(OUTAGE_MS);
  });
  expect(await settled).toBe("current");
  expect((await begin()).from).toEqual({ ...run.to, size: 7 });
});

it("a state that could not be restored counts once as such, however often it was told", async () => {
  const made = await start();
  const { sessions, begin, redis } = made;
  await sessions.settle(await begin(), stored, "request", never);
  const run = await begin();
  let settled: Promise<unknown> = Promise.resolve();
  await whileStopped(made, () => {
    settled = sessions.settle(run, { kind: "failed" }, "request", never);
    return sleep(OUTAGE_MS);
  });
  expect(await settled).toBe("failed");
  expect(await redis.hget("sessionstate:tenant:user:alice", "failures")).toBe("1");
});
