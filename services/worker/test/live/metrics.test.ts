/** What the worker's metrics say of the queues, over a real Redis. */

import { openQueues } from "@svc/job-queue";
import { createLog, createRegistry } from "@svc/service-kit";
import { held, never, OK, startJobs, type TestJobs } from "@svc/test-kit/components/job-queue";
import { jobOf, resumeOf } from "@svc/test-kit/components/messages";
import { afterEach, expect, it } from "vitest";
import { workerMetrics } from "../../src/health/metrics.ts";

let made: TestJobs;
afterEach(() => made.stop());

it("svc_queue_jobs counts new runs and resumes that wait or run; an ended job counts no more", async () => {
  made = await startJobs();
  const { jobs, consume, redis, config } = made;
  const registry = createRegistry();
  const metrics = workerMetrics(registry);
  const queues = openQueues(redis, createLog("worker", config));
  const shown = async () => {
    await metrics.refresh(queues, { python: true, other: false });
    const text = await registry.metrics();
    const value = (state: string) =>
      text.match(`svc_queue_jobs{queue="python-queue",state="${state}"} (\\d+)`)?.[1];
    return [value("waiting"), value("active"), value("delayed")];
  };
  const { work, end } = held();
  const { started } = await consume({ work, concurrency: 1 });
  const results = [jobs.run(jobOf(), never())];
  await expect.poll(() => started).toHaveLength(1);
  results.push(jobs.run(jobOf(), never()), jobs.run(resumeOf(), never(), "first"));
  await expect.poll(shown).toEqual(["2", "1", "0"]);
  expect(await registry.metrics()).toContain('svc_worker_running{worker_type="other"} 0');
  end();
  expect(await Promise.all(results)).toEqual([OK, OK, OK]);
  await expect.poll(shown).toEqual(["0", "0", "0"]);
  await Promise.all([queues.python.close(), queues.other.close()]);
});

it("a scrape that comes while another one asks Redis shows the counts of before", async () => {
  made = await startJobs();
  const registry = createRegistry();
  const metrics = workerMetrics(registry);
  const queues = openQueues(made.redis, createLog("worker", made.config));
  await metrics.refresh(queues, { python: true, other: true });
  const other = metrics.refresh(queues, { python: true, other: true });
  expect(await registry.metrics()).toMatch(/^svc_queue_jobs\{/m);
  await other;
  await Promise.all([queues.python.close(), queues.other.close()]);
});

it("svc_worker_running is 0 while Redis is away, and the counts of the queues are not those of before", async () => {
  made = await startJobs();
  const { redis, config, server } = made;
  const registry = createRegistry();
  const metrics = workerMetrics(registry);
  const queues = openQueues(redis, createLog("worker", config));
  const shown = async () => {
    await metrics.refresh(queues, { python: true, other: true });
    const text = await registry.metrics();
    return {
      running: [...text.matchAll(/^svc_worker_running\{.*\} (\d)$/gm)].map(([, value]) => value),
      isCounted: /^svc_queue_jobs\{/m.test(text),
    };
  };
  expect(await shown()).toEqual({ running: ["1", "1"], isCounted: true });
  await server.kill();
  expect(await shown()).toEqual({ running: ["0", "0"], isCounted: false });
  await server.start();
  await expect.poll(shown, { timeout: 20_000 }).toEqual({ running: ["1", "1"], isCounted: true });
  await Promise.all([queues.python.close(), queues.other.close()]);
});
