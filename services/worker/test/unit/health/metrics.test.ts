/** What the worker's metrics count of a job. */
import type { JobResult } from "@svc/contracts";
import { createRegistry } from "@svc/service-kit";
import { jobOf } from "@svc/test-kit/components/messages";
import { workerMetrics } from "@svc/worker/health/metrics";
import { expect, it } from "vitest";

it("a job that nobody waits for, and that waited for an hour, is not in the waits of callers, but in the stage", async () => {
  const registry = createRegistry();
  const { during } = workerMetrics(registry);
  const work = async () => ({ ok: true as const, answer: {} });
  await during({ job: jobOf({ kept: 60_000 }), queueMs: 3_600_000 }, work);
  await during({ job: jobOf(), queueMs: 0 }, work);
  const text = await registry.metrics();
  expect(text).toContain('svc_queue_wait_seconds_count{queue="python-queue"} 1\n');
  expect(text).toContain('svc_queue_wait_seconds_bucket{le="5",queue="python-queue"} 1\n');
  expect(text).toMatch(/^svc_stage_seconds_count\{.*stage="queue".*\} 2$/m);
});

const ended = (code: string): JobResult => ({
  ok: false,
  error: { code, status: 503, message: "It ended." },
});

it("a job that goes back to the queue has not failed; one that somebody waits for has", async () => {
  const registry = createRegistry();
  const { during } = workerMetrics(registry);
  const failed = async () =>
    /^svc_jobs_failed_total\{language="python"\} (\d+)$/m.exec(await registry.metrics())?.[1];
  await during({ job: jobOf({ kept: 1000 }), queueMs: 0 }, async () => ended("queue_saturated"));
  await during({ job: jobOf({ kept: 1000 }), queueMs: 0 }, async () => ended("shutting_down"));
  expect(await failed()).toBe("0");
  await during({ job: jobOf(), queueMs: 0 }, async () => ended("queue_saturated"));
  await during({ job: jobOf({ kept: 1000 }), queueMs: 0 }, async () => ended("sandbox_setup_failed"));
  expect(await failed()).toBe("2");
});
