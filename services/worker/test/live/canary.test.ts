/** Which queues the canary proves, over a real Redis. In the place of a runner a server of the test tells its health. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { canaryKey, type Job } from "@svc/contracts";
import { openQueues } from "@svc/job-queue";
import { createLog, createRegistry, loadConfig, type Registry } from "@svc/service-kit";
import { held, never, OK, startJobs, type TestJobs } from "@svc/test-kit/components/job-queue";
import { jobOf } from "@svc/test-kit/components/messages";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Canary } from "../../src/health/canary.ts";
import { workerMetrics } from "../../src/health/metrics.ts";
import { RunnerFleet } from "../../src/runner/fleet.ts";

/** Half of it is longer than a busy machine is late. */
const INTERVAL_MS = 15_000;
const FAILED = { ok: false, error: { code: "internal_error", status: 500, message: "" } } as const;

let made: TestJobs;
let canary: Canary;
let queues: ReturnType<typeof openQueues>;
let runner: Server;
let fleet: RunnerFleet;
let registry: Registry;
/** What the runner says; undefined: it says nothing. */
let health: object | undefined;

const idle = () => ({ slots: { total: 8, busy: 0 }, running: {} });

/** The canary of a worker with these settings. */
function openCanary(env: Record<string, string> = {}): Canary {
  const config = loadConfig("worker", {
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: newSecret(),
    SANDBOX_ENDPOINT: `http://127.0.0.1:${(runner.address() as AddressInfo).port}`,
    ...env,
  });
  const log = createLog("worker", config);
  fleet = new RunnerFleet(config, { log });
  const metrics = workerMetrics(registry);
  return new Canary({ config, redis: made.redis, log, metrics, queues, runners: fleet });
}

beforeEach(async () => {
  health = idle();
  runner = createServer((_request, response) => {
    if (health !== undefined) response.end(JSON.stringify(health));
  }).listen(0, "127.0.0.1");
  await once(runner, "listening");
  made = await startJobs();
  queues = openQueues(made.redis, createLog("worker", made.config));
  registry = createRegistry();
  canary = openCanary();
});
afterEach(async () => {
  vi.restoreAllMocks();
  canary.stop();
  runner.closeAllConnections();
  runner.close();
  await fleet.close();
  await Promise.all([queues.python.close(), queues.other.close()]);
  await made.stop();
});

/** A worker that takes jobs of Python only. */
const consumePython = () =>
  made.consume({
    kinds: ["python"],
    work: async (job: Job) => {
      canary.observe(job.language, OK);
      return OK;
    },
  });

it("a queue whose jobs nobody takes keeps the canary from being fresh, and gets one job, not many", async () => {
  await consumePython();
  canary.start(["rust", "python", "bash"]);
  await expect.poll(() => made.redis.exists(canaryKey("python"))).toBe(1);
  // Another attempt follows after a second.
  await sleep(2500);
  expect(canary.missing).toBeDefined();
  expect(await made.redis.exists(canaryKey("other"))).toBe(0);
  expect((await queues.other.counts()).waiting).toBe(1);
  canary.observe("rust", FAILED);
  expect(canary.missing).toBeDefined();
  canary.observe("rust", OK);
  expect(canary.missing).toBeUndefined();
  await expect.poll(() => made.redis.exists(canaryKey("other"))).toBe(1);
});

it("one that takes long gets no company; after one that failed, another follows", async () => {
  const end = Promise.withResolvers<typeof FAILED>();
  const worker = await made.consume({ kinds: ["python"], work: () => end.promise, concurrency: 8 });
  canary.start(["python"]);
  await expect.poll(() => worker.started.length).toBe(1);
  await sleep(3000);
  expect(worker.started.length).toBe(1);
  end.resolve(FAILED);
  await expect.poll(() => worker.started.length).toBeGreaterThan(1);
});

it("a queue without an installed language is not waited for", async () => {
  await consumePython();
  expect(canary.missing).toBeDefined();
  canary.start(["python"]);
  await expect.poll(() => canary.missing).toBeUndefined();
  expect((await queues.other.counts()).waiting).toBe(0);
});

it("an idle queue gets one when its interval is over, not half an interval later", async () => {
  await fleet.close();
  registry = createRegistry();
  canary = openCanary({ CANARY_INTERVAL_MS: String(INTERVAL_MS) });
  const times: number[] = [];
  await made.consume({
    work: async (job: Job) => {
      times.push(performance.now());
      canary.observe(job.language, OK);
      return OK;
    },
  });
  canary.start(["python"]);
  await expect.poll(() => times.length, { timeout: 3 * INTERVAL_MS }).toBe(2);
  const [first = 0, second = 0] = times;
  expect(second - first).toBeGreaterThanOrEqual(INTERVAL_MS);
  expect(second - first).toBeLessThan(1.5 * INTERVAL_MS);
});

it("a success is told to all though the clock was set back by an hour", async () => {
  canary.start(["python"]);
  canary.observe("python", OK);
  await expect.poll(() => made.redis.exists(canaryKey("python"))).toBe(1);
  const now = Date.now;
  vi.spyOn(Date, "now").mockImplementation(() => now() - 3_600_000);
  // As old as one may be, by a clock that nobody sets.
  const monotonic = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => monotonic() + 61_000);
  expect(canary.missing).toBeDefined();
  await made.redis.del(canaryKey("python"));
  canary.observe("python", OK);
  expect(canary.missing).toBeUndefined();
  await expect.poll(() => made.redis.exists(canaryKey("python"))).toBe(1);
  const told = /^svc_canary_last_success_timestamp_seconds ([\d.]+)$/m.exec(await registry.metrics())?.[1];
  expect(Math.abs(Number(told) * 1000 - Date.now())).toBeLessThan(10_000);
});

describe("a queue whose jobs wait", () => {
  /** A worker with one place for Python and one for the rest, whose jobs do not end, and one job more than it can take. */
  async function occupied() {
    const { work, end } = held();
    const worker = await made.consume({ work, concurrency: 1 });
    const jobs = [1, 2].map(() => made.jobs.run(jobOf(), never()));
    await expect.poll(() => worker.started.length).toBe(1);
    return async () => {
      end();
      await Promise.all(jobs);
    };
  }

  it("is proved by its programs that run, and another queue is not", async () => {
    const end = await occupied();
    health = { slots: { total: 8, busy: 1 }, running: { python: 1 } };
    canary.start(["python", "bash"]);
    await expect.poll(() => made.redis.exists(canaryKey("python"))).toBe(1);
    await sleep(2500);
    expect(await made.redis.exists(canaryKey("other"))).toBe(0);
    expect(canary.missing).toContain("(other)");
    await end();
  });

  it("is proved by programs of any queue where the runners have no slot, and so is one whose canary waits for a slot", async () => {
    const end = await occupied();
    health = { slots: { total: 2, busy: 2 }, running: { bash: 1 } };
    canary.start(["python", "bash"]);
    await expect.poll(() => canary.missing).toBeUndefined();
    await expect.poll(() => made.redis.exists(canaryKey("python"), canaryKey("other"))).toBe(2);
    await end();
  });

  it.each([
    ["runs no program within its time", { slots: { total: 2, busy: 2 }, running: {} }],
    ["is of an earlier version", { slots: { total: 2, busy: 2 } }],
    ["says nothing", undefined],
  ])("is not proved by a runner that %s", async (_what, told) => {
    const end = await occupied();
    health = told;
    canary.start(["python", "bash"]);
    await sleep(3500);
    expect(canary.missing).toBeDefined();
    expect(await made.redis.exists(canaryKey("python"), canaryKey("other"))).toBe(0);
    await end();
  });
});
