/** Jobs that come too late, take too long, or whose callers leave: nothing of them starts later, nothing of them goes on. */
import { setTimeout as sleep } from "node:timers/promises";
import { jobIdOf, QUEUE_NAMES } from "@svc/job-queue";
import { caller, never, OK, startJobs, type TestJobs, workFor } from "@svc/test-kit/components/job-queue";
import { jobOf, resumeOf } from "@svc/test-kit/components/messages";
import { afterEach, describe, expect, it } from "vitest";

const IDLE = { waiting: 0, active: 0, delayed: 0 };
const LONG_MS = 30_000;
const BRIEF = {
  SANDBOX_COMPILE_TIMEOUT: "1",
  JOB_PRIME_ALLOWANCE_MS: "1",
  JOB_POSTPROCESS_ALLOWANCE_MS: "1",
  JOB_WAIT_GRACE_MS: "100",
};
const KINDS = [
  ["new run", jobOf],
  ["resume", resumeOf],
] as const;

let made: TestJobs;
const start = async (env?: Record<string, string>) => {
  made = await startJobs(env);
  return made;
};
afterEach(() => made.stop());

const errorOf = (result: Promise<unknown>) => result.catch((error: unknown) => error);
/** A worker that comes now starts nothing but what is sent after. */
async function expectNoneStarts(): Promise<void> {
  const { started } = await made.consume({ work: async () => OK });
  const next = jobOf();
  expect(await made.jobs.run(next, never())).toEqual(OK);
  expect(started).toEqual([next.execution_id]);
}

describe.each(KINDS)("a %s that does not start in time", (_kind, make) => {
  it("is refused as safe to repeat, and never runs", async () => {
    const { jobs, counts } = await start({ JOB_QUEUE_WAIT_MS: "300" });
    const refused = await errorOf(jobs.run(make(), never()));
    expect(refused).toMatchObject({ code: "queue_saturated", status: 503, headers: { "retry-after": "5" } });
    expect(await counts()).toEqual(IDLE);
    await expectNoneStarts();
  });
});

it("a job that has started in time is waited for, whatever is announced", async () => {
  const { jobs, consume, deafen } = await start({ JOB_QUEUE_WAIT_MS: "1500" });
  await consume({ work: (_job, cancelled) => workFor(3000, cancelled) });
  await deafen();
  expect(await jobs.run(jobOf(), never())).toEqual(OK);
});

it("a job that has ended in time is answered, though nobody heard of it until the time was over", async () => {
  const { jobs, consume, deafen } = await start({ JOB_QUEUE_WAIT_MS: "1500" });
  await consume({ work: async () => OK });
  await deafen();
  expect(await jobs.run(jobOf(), never())).toEqual(OK);
});

it("a job that is gone when its time is over was lost: nobody knows whether it ran", async () => {
  const { jobs, counts, redis } = await start({ JOB_QUEUE_WAIT_MS: "1500" });
  const result = errorOf(jobs.run(jobOf(), never()));
  await expect.poll(counts).toEqual({ ...IDLE, waiting: 1 });
  await redis.flushall();
  expect(await result).toMatchObject({ code: "store_unavailable", status: 503 });
});

it.each(KINDS)("a %s that takes too long is cancelled at the outermost deadline", async (_kind, make) => {
  const { jobs, consume } = await start({
    ...BRIEF,
    JOB_QUEUE_WAIT_MS: "1500",
  });
  const { started, cancelled } = await consume({ work: (_job, stop) => workFor(LONG_MS, stop) });
  const ended = await errorOf(jobs.run(make({ run_timeout: 100 }), never()));
  expect(ended).toMatchObject({ code: "execution_timeout", status: 504 });
  expect(started).toHaveLength(1);
  await expect.poll(() => cancelled).toEqual(started);
});

it.each(KINDS)("a %s has its time after its worker has waited for a runner", async (_kind, make) => {
  const { jobs, consume } = await start({ ...BRIEF, JOB_QUEUE_WAIT_MS: "10000" });
  await consume({ work: (_job, cancelled) => workFor(3000, cancelled) });
  expect(await jobs.run(make({ run_timeout: 100 }), never())).toEqual(OK);
});

it.each(KINDS)("a %s has its time though the clock of its worker is an hour behind", async (_kind, make) => {
  const { jobs, consume, deafen, redis } = await start();
  const anHourAgo = Date.now() - 3_600_000;
  const { cancelled } = await consume({
    work: async (job, stop) => {
      await redis.hset(`bull:${QUEUE_NAMES.python}:${jobIdOf(job)}`, "processedOn", anHourAgo);
      return workFor(5000, stop);
    },
  });
  await deafen();
  expect(await jobs.run(make(), never())).toEqual(OK);
  expect(cancelled).toEqual([]);
});

describe.each(KINDS)("a client that leaves a %s", (_kind, make) => {
  it("before its start takes it out of the queue: it never runs", async () => {
    const { jobs, counts } = await start();
    const { signal, leave } = caller();
    const result = errorOf(jobs.run(make(), signal));
    await expect.poll(counts).toEqual({ ...IDLE, waiting: 1 });
    leave();
    expect(await result).toMatchObject({ code: "execution_cancelled", status: 409 });
    expect(await counts()).toEqual(IDLE);
    await expectNoneStarts();
  });

  it("after its start has it cancelled within a second", async () => {
    const { jobs, consume, counts } = await start();
    const { started, cancelled } = await consume({ work: (_job, stop) => workFor(LONG_MS, stop) });
    const { signal, leave } = caller();
    const result = errorOf(jobs.run(make(), signal));
    await expect.poll(() => started).toHaveLength(1);
    leave();
    expect(await result).toMatchObject({ code: "execution_cancelled" });
    await expect.poll(() => cancelled, { timeout: 1000 }).toEqual(started);
    await expect.poll(counts).toEqual(IDLE);
  });

  it("after its start has it cancelled also when its worker does not hear of it", async () => {
    const { jobs, consume, counts } = await start();
    const { started, cancelled, deafen } = await consume({ work: (_job, stop) => workFor(LONG_MS, stop) });
    await deafen();
    const { signal, leave } = caller();
    const result = errorOf(jobs.run(make(), signal));
    await expect.poll(() => started).toHaveLength(1);
    leave();
    expect(await result).toMatchObject({ code: "execution_cancelled" });
    await expect.poll(() => cancelled).toEqual(started);
    await expect.poll(counts).toEqual(IDLE);
  });

  it("before anything was queued leaves nothing behind", async () => {
    const { jobs, counts } = await start();
    await expect(jobs.run(make(), AbortSignal.abort(new Error("the client left")))).rejects.toThrow("left");
    expect(await counts()).toEqual(IDLE);
  });

  it("cancels its own alone", async () => {
    const { jobs, consume } = await start();
    const { started } = await consume({ work: (_job, stop) => workFor(800, stop) });
    const { signal, leave } = caller();
    const [mine, other] = [jobs.run(make(), signal), jobs.run(make(), never())];
    await expect.poll(() => started).toHaveLength(2);
    leave();
    await expect(mine).rejects.toThrow();
    expect(await other).toEqual(OK);
  });

  it("again and again, at any moment of its start, leaves nothing that runs", async () => {
    const { jobs, consume, counts } = await start();
    await consume({ work: (_job, stop) => workFor(LONG_MS, stop) });
    for (let delay = 0; delay < 20; delay++) {
      const { signal, leave } = caller();
      const result = errorOf(jobs.run(make(), signal));
      await sleep(delay / 4);
      leave();
      expect(await result).toMatchObject({ code: "execution_cancelled" });
    }
    await expect.poll(counts).toEqual(IDLE);
  });
});
