import { setTimeout as sleep } from "node:timers/promises";
import { answerKey, CANCEL_CHANNEL, ServiceError } from "@svc/contracts";
import { afterEach, describe, expect, it, vi } from "vitest";
import { jobOf, never, OK, startJobs, type TestJobs, workFor } from "../support/consumer.ts";

const FAILED = { ok: false, error: { code: "input_unavailable", status: 502, message: "Gone." } } as const;
let made: TestJobs;
const start = async (env?: Record<string, string>) => {
  made = await startJobs(env);
  return made;
};
afterEach(() => made.stop());

const counts = () => made.queue.getJobCounts("waiting", "active", "delayed", "prioritized");
const IDLE = { waiting: 0, active: 0, delayed: 0, prioritized: 0 };

describe("a job", () => {
  it.each([[OK], [FAILED]])("gives the worker's result back: %j", async (result) => {
    const { jobs, consume } = await start();
    await consume({ work: async () => result });
    expect(await jobs.run(jobOf(), never())).toEqual(result);
  });

  it("reaches the worker as it was given, each with its own answer", async () => {
    const { jobs, consume } = await start();
    await consume({ work: async (job) => ({ ok: true, answer: { echo: job.code, id: job.execution_id } }) });
    const given = Array.from({ length: 30 }, (_, at) => jobOf({ code: `é🎉${at}\0` }));
    const results = await Promise.all(given.map((job) => jobs.run(job, never())));
    expect(results).toEqual(
      given.map((job) => ({ ok: true, answer: { echo: job.code, id: job.execution_id } })),
    );
  });

  it("whose notices are lost is found by looking", async () => {
    const { jobs, consume } = await start();
    await consume({ work: async () => OK, notices: false });
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
  });

  it("whose answer nobody was there to take is found where it was kept", async () => {
    const { jobs, redis } = await start();
    const job = jobOf();
    const result = jobs.run(job, never());
    await redis.set(answerKey(job.execution_id), JSON.stringify(OK));
    expect(await result).toEqual(OK);
  });

  it("that fails in the queue itself is a broken run", async () => {
    const { jobs, consume } = await start();
    await consume({
      work: async () => {
        throw new Error("the worker broke");
      },
      notices: false,
    });
    expect(await jobs.run(jobOf(), never())).toMatchObject({
      ok: false,
      error: { code: "sandbox_execution_failed", status: 502 },
    });
  });
});

describe("an ended job", () => {
  const inStore = async (id: string) => (await made.queue.getJobState(id)) !== "unknown";

  it("leaves the store soon after its answer was read, and stays when another replica may look for it", async () => {
    const { jobs, consume } = await start();
    await consume({ work: async () => OK });
    const round = { ...jobOf(), job_id: "program.1.1" };
    const job = jobOf({ code: "x".repeat(100_000) });
    const results = [jobs.run(job, never()), jobs.run(round, never())];
    await Promise.all(results);
    await vi.waitFor(async () => expect(await inStore(job.execution_id)).toBe(false), 20_000);
    expect(await jobs.exists(round)).toBe(true);
  });

  it("leaves no copy of its answer among the events of the queue", async () => {
    const { jobs, consume, redis } = await start();
    const answer = { ok: true, answer: { stdout: "x".repeat(10_000) } } as const;
    await consume({ work: async () => answer });
    for (let round = 0; round < 30; round++) await jobs.run(jobOf(), never());
    const kept = JSON.stringify(await redis.xrange("bull:python-queue:events", "-", "+"));
    expect(kept.length).toBeLessThan(30_000);
  });
});

describe("a job that does not start in time", () => {
  it("is refused as safe to repeat, and never runs", async () => {
    const { jobs, consume } = await start({ JOB_QUEUE_WAIT_MS: "300" });
    const refused = await jobs.run(jobOf(), never()).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "queue_saturated", status: 503, headers: { "retry-after": "5" } });
    expect(await counts()).toEqual(IDLE);
    const { started } = await consume({ work: async () => OK });
    await sleep(300);
    expect(started).toEqual([]);
  });

  it("waits on when it has started, whatever the notices say", async () => {
    const { jobs, consume } = await start({ JOB_QUEUE_WAIT_MS: "1500" });
    await consume({ work: (_job, cancelled) => workFor(3000, cancelled), notices: false });
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
  });
});

describe("a job that takes too long", () => {
  it("is cancelled at the outermost deadline", async () => {
    const { jobs, consume } = await start({
      SANDBOX_COMPILE_TIMEOUT: "1",
      JOB_PRIME_ALLOWANCE_MS: "1",
      JOB_POSTPROCESS_ALLOWANCE_MS: "1",
      JOB_WAIT_GRACE_MS: "100",
    });
    const { started, cancelled } = await consume({ work: (_job, signal) => workFor(30_000, signal) });
    const job = jobOf({ run_timeout: 100 });
    await expect(jobs.run(job, never())).rejects.toMatchObject({ code: "execution_timeout", status: 504 });
    expect(started).toEqual([job.execution_id]);
    await expect.poll(() => cancelled).toEqual([job.execution_id]);
  });
});

describe("a client that leaves", () => {
  const left = () => {
    const controller = new AbortController();
    return {
      signal: controller.signal,
      leave: () => controller.abort(new ServiceError("execution_cancelled")),
    };
  };

  it("before its job starts takes it out of the queue: it never runs", async () => {
    const { jobs, consume } = await start();
    const { signal, leave } = left();
    const result = jobs.run(jobOf(), signal);
    await expect.poll(async () => (await counts()).waiting).toBe(1);
    leave();
    await expect(result).rejects.toMatchObject({ code: "execution_cancelled", status: 409 });
    expect(await counts()).toEqual(IDLE);
    const { started } = await consume({ work: async () => OK });
    await sleep(300);
    expect(started).toEqual([]);
  });

  it("after the start has its job cancelled within a second", async () => {
    const { jobs, consume } = await start();
    const { started, cancelled } = await consume({ work: (_job, stop) => workFor(30_000, stop) });
    const { signal, leave } = left();
    const job = jobOf();
    const result = jobs.run(job, signal);
    await expect.poll(() => started).toEqual([job.execution_id]);
    leave();
    await expect(result).rejects.toMatchObject({ code: "execution_cancelled" });
    await expect.poll(() => cancelled, { timeout: 1000 }).toEqual([job.execution_id]);
    await expect.poll(counts).toEqual(IDLE);
  });

  it("before anything was queued leaves nothing behind", async () => {
    const { jobs } = await start();
    await expect(
      jobs.run(jobOf(), AbortSignal.abort(new ServiceError("execution_cancelled"))),
    ).rejects.toThrow();
    expect(await counts()).toEqual(IDLE);
  });

  it("cancels its own job only", async () => {
    const { jobs, consume } = await start();
    const { started } = await consume({ work: (_job, stop) => workFor(800, stop) });
    const { signal, leave } = left();
    const [mine, other] = [jobs.run(jobOf(), signal), jobs.run(jobOf(), never())];
    await expect.poll(() => started.length).toBe(2);
    leave();
    await expect(mine).rejects.toThrow();
    expect(await other).toEqual(OK);
  });
});

describe("a store that goes away", () => {
  it("and comes back empty loses the job: the caller is told and may repeat it", async () => {
    const { jobs, server } = await start();
    const result = jobs.run(jobOf(), never()).catch((error: unknown) => error);
    await expect.poll(async () => (await counts()).waiting).toBe(1);
    await server.kill();
    await sleep(300);
    await server.start();
    expect(await result).toMatchObject({ code: "store_unavailable", status: 503 });
  });

  it("while a job runs does not lose its answer when it comes back", async () => {
    const { jobs, server, redis, consume } = await start();
    const { started } = await consume({ work: (_job, stop) => workFor(500, stop), notices: false });
    const job = jobOf();
    const result = jobs.run(job, never());
    await expect.poll(() => started).toEqual([job.execution_id]);
    await server.kill();
    await server.start();
    await redis.set(answerKey(job.execution_id), JSON.stringify(OK));
    expect(await result).toEqual(OK);
  });

  it("before a job is queued: store_unavailable within seconds, and the next job runs", async () => {
    const { jobs, server, consume } = await start();
    await server.kill();
    await expect(jobs.run(jobOf(), never())).rejects.toMatchObject({
      code: "store_unavailable",
      status: 503,
    });
    await server.start();
    await consume({ work: async () => OK });
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
  });

  it("and comes back is subscribed to again: answers come as notices", async () => {
    const { jobs, server, redis, consume } = await start();
    await server.kill();
    await server.start();
    await expect.poll(() => redis.pubsub("CHANNELS", "svc:answers:*"), { timeout: 5000 }).toHaveLength(1);
    await consume({ work: async () => OK });
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
    expect(await redis.pubsub("NUMSUB", CANCEL_CHANNEL)).toEqual([CANCEL_CHANNEL, 1]);
  });
});
