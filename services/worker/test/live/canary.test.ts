/** Which queues the canary proves, over a real Redis. */
import { setTimeout as sleep } from "node:timers/promises";
import { canaryKey, type Job } from "@svc/contracts";
import { openQueues } from "@svc/job-queue";
import { createLog, createRegistry } from "@svc/service-kit";
import { OK, startJobs, type TestJobs } from "@svc/test-kit/components/job-queue";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Canary } from "../../src/health/canary.ts";
import { workerMetrics } from "../../src/health/metrics.ts";

let made: TestJobs;
let canary: Canary;
let queues: ReturnType<typeof openQueues>;
beforeEach(async () => {
  made = await startJobs();
  const log = createLog("worker", made.config);
  queues = openQueues(made.redis, log);
  canary = new Canary(made.config, made.redis, log, workerMetrics(createRegistry()), queues);
});
afterEach(async () => {
  canary.stop();
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
  expect(canary.fresh).toBe(false);
  expect(await made.redis.exists(canaryKey("other"))).toBe(0);
  expect((await queues.other.counts()).waiting).toBe(1);
  canary.observe("rust", { ok: false, error: { code: "internal_error", status: 500, message: "" } });
  expect(canary.fresh).toBe(false);
  canary.observe("rust", OK);
  expect(canary.fresh).toBe(true);
  await expect.poll(() => made.redis.exists(canaryKey("other"))).toBe(1);
});

it("one that takes long gets no company; after one that failed, another follows", async () => {
  const failed = { ok: false, error: { code: "internal_error", status: 500, message: "" } } as const;
  const end = Promise.withResolvers<typeof failed>();
  const worker = await made.consume({ kinds: ["python"], work: () => end.promise, concurrency: 8 });
  canary.start(["python"]);
  await expect.poll(() => worker.started.length).toBe(1);
  await sleep(3000);
  expect(worker.started.length).toBe(1);
  end.resolve(failed);
  await expect.poll(() => worker.started.length).toBeGreaterThan(1);
});

it("a queue without an installed language is not waited for", async () => {
  await consumePython();
  expect(canary.fresh).toBe(false);
  canary.start(["python"]);
  await expect.poll(() => canary.fresh).toBe(true);
  expect((await queues.other.counts()).waiting).toBe(0);
});
