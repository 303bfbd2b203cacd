/** Workers that die and a store that goes away: a new run is repeated once, a paused program never goes on twice. */
import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { caller, held, never, OK, startJobs, workFor } from "@svc/test-kit/components/job-queue";
import { jobOf, resumeOf } from "@svc/test-kit/components/messages";
import { describe, it, type TestContext } from "vitest";

const LONG_MS = 60_000;
/** A lock lasts five seconds, stalled jobs are looked for every two and a half, and a job is moved at the second look. */
const FOUND_MS = 5000 + 3 * 2500 + 2500;
const BY_PROCESS = { ok: true, answer: { by: "process" } };
const BROKEN = { ok: false, error: { code: "sandbox_execution_failed", status: 502 } };
const IDLE = { waiting: 0, active: 0, delayed: 0 };

/** A store and workers of the test's own: tests wait most of their time, side by side. */
const start = async ({ onTestFinished }: TestContext) => {
  const made = await startJobs();
  onTestFinished(made.stop);
  return made;
};

const errorOf = (result: Promise<unknown>) => result.catch((error: unknown) => error);
const longJob = () => jobOf({ run_timeout: LONG_MS });
const longResume = () => resumeOf({ run_timeout: LONG_MS });

describe.concurrent("a lock", () => {
  it("is renewed for as long as the job runs: no other worker takes it", async (context) => {
    const { expect } = context;
    const { jobs, spawnWorker, consume } = await start(context);
    const worker = await spawnWorker(14_000);
    const result = jobs.run(longJob(), never());
    await expect.poll(() => worker.started).toHaveLength(1);
    const other = await consume({ work: async () => OK });
    expect(await result).toEqual(BY_PROCESS);
    expect(other.started).toEqual([]);
  });

  it("is renewed though the clock of its worker is set back while the job runs", async (context) => {
    const { expect } = context;
    const { jobs, spawnWorker, consume } = await start(context);
    const worker = await spawnWorker(14_000);
    const result = jobs.run(longJob(), never());
    await expect.poll(() => worker.started).toHaveLength(1);
    worker.setClockBack(3_600_000);
    const other = await consume({ work: async () => OK });
    expect(await result).toEqual(BY_PROCESS);
    expect(other.started).toEqual([]);
  });
});

describe.concurrent("a lock that is lost", () => {
  it("aborts its job, and one warning says so", async (context) => {
    const { expect } = context;
    const { jobs, consume, redis } = await start(context);
    const warnings: string[] = [];
    const { started, cancelled } = await consume({
      work: (_, signal) => workFor(LONG_MS, signal),
      onWarning: (message) => warnings.push(message),
    });
    const left = caller();
    jobs.run(longJob(), left.signal).catch(() => undefined);
    await expect.poll(() => started).toHaveLength(1);
    expect(await redis.del(`bull:python-queue:${started[0]}:lock`)).toBe(1);
    await expect.poll(() => cancelled).toEqual(started);
    left.leave();
    expect(warnings.filter((message) => message.startsWith("lock renewal failed"))).toHaveLength(1);
  });
});

describe.concurrent("a job that comes back to the worker that lost it", () => {
  it("runs there, is cancelled there, and the end of the lost run ends nothing of it", async (context) => {
    const { expect } = context;
    const { jobs, consume, redis } = await start(context);
    const lost = Promise.withResolvers<typeof OK>();
    let runs = 0;
    const { started, cancelled } = await consume({
      // The lost run takes a while to end.
      work: (_, signal) => (runs++ === 0 ? lost.promise : workFor(LONG_MS, signal)),
    });
    const left = caller();
    const result = errorOf(jobs.run(longJob(), left.signal));
    await expect.poll(() => started).toHaveLength(1);
    expect(await redis.del(`bull:python-queue:${started[0]}:lock`)).toBe(1);
    await expect.poll(() => started, { timeout: 2 * FOUND_MS }).toHaveLength(2);
    await expect.poll(() => cancelled).toHaveLength(1);
    lost.resolve(OK);
    // Its lock is renewed: it is not lost in turn.
    await sleep(FOUND_MS);
    expect(started).toHaveLength(2);
    expect(cancelled).toHaveLength(1);
    left.leave();
    expect(await result).toMatchObject({ code: "execution_cancelled" });
    await expect.poll(() => cancelled).toHaveLength(2);
  });
});

describe.concurrent("a worker that dies", () => {
  it("after its answer was read, before the queue heard of it: the run is not repeated", async (context) => {
    const { expect } = context;
    const { jobs, spawnWorker, consume, redis, counts } = await start(context);
    const worker = await spawnWorker(LONG_MS);
    const job = longJob();
    const result = jobs.run(job, never());
    await expect.poll(() => worker.started).toHaveLength(1);
    const [channel = ""] = (await redis.pubsub("CHANNELS", "svc:results:*")) as string[];
    await redis.set(`svc:result:${job.execution_id}`, JSON.stringify(OK));
    await redis.publish(channel, job.execution_id);
    expect(await result).toEqual(OK);
    worker.kill("SIGKILL");
    const { started } = await consume({ work: async () => OK });
    await expect.poll(counts, { timeout: 2 * FOUND_MS }).toEqual(IDLE);
    expect(started).toEqual([]);
  });

  it("with a new run: another worker takes it up", async (context) => {
    const { expect } = context;
    const { jobs, spawnWorker, consume } = await start(context);
    const dying = await spawnWorker(LONG_MS);
    const result = jobs.run(longJob(), never());
    await expect.poll(() => dying.started).toHaveLength(1);
    dying.kill("SIGKILL");
    const other = await consume({ work: async () => OK });
    const began = performance.now();
    expect(await result).toEqual(OK);
    expect(performance.now() - began).toBeLessThan(FOUND_MS);
    expect(other.started).toEqual(dying.started);
  });

  it("with a resume: the caller knows soon, and no other worker starts it", async (context) => {
    const { expect } = context;
    const { jobs, spawnWorker, consume, counts } = await start(context);
    const dying = await spawnWorker(LONG_MS);
    const result = jobs.run(longResume(), never());
    await expect.poll(() => dying.started).toHaveLength(1);
    dying.kill("SIGKILL");
    const other = await consume({ work: async () => OK });
    const began = performance.now();
    expect(await result).toMatchObject(BROKEN);
    expect(performance.now() - began).toBeLessThan(FOUND_MS);
    expect(other.started).toEqual([]);
    await expect.poll(counts).toEqual(IDLE);
  });

  it("twice with the same run: it is broken", async (context) => {
    const { expect } = context;
    const { jobs, spawnWorker, consume } = await start(context);
    const result = jobs.run(longJob(), never());
    for (let death = 0; death < 2; death++) {
      const dying = await spawnWorker(LONG_MS);
      await expect.poll(() => dying.started, { timeout: 2 * FOUND_MS }).toHaveLength(1);
      dying.kill("SIGKILL");
    }
    const other = await consume({ work: async () => OK });
    expect(await result).toMatchObject(BROKEN);
    expect(other.started).toEqual([]);
  });
});

describe.concurrent("a worker that is silent for a while", () => {
  it.for([
    ["new run", longJob, OK, 1],
    ["resume", longResume, BROKEN, 0],
  ] as const)(
    "loses its %s, and its late result harms no one",
    async ([_kind, make, expected, repeats], context) => {
      const { expect } = context;
      const { jobs, spawnWorker, consume, counts } = await start(context);
      const silent = await spawnWorker(1000);
      const result = jobs.run(make(), never());
      await expect.poll(() => silent.started).toHaveLength(1);
      silent.kill("SIGSTOP");
      const other = await consume({ work: async () => OK });
      expect(await result).toMatchObject(expected);
      silent.kill("SIGCONT");
      expect(await jobs.run(jobOf(), never())).toMatchObject({ ok: true });
      await expect.poll(counts).toEqual(IDLE);
      expect(other.started.filter((id) => id === silent.started[0])).toHaveLength(repeats);
    },
  );

  it("is told to stop a job whose lock another worker may have", async (context) => {
    const { expect } = context;
    const { jobs, consume, redis } = await start(context);
    const { started, cancelled } = await consume({ work: (_job, stop) => workFor(LONG_MS, stop) });
    const resume = longResume();
    const result = jobs.run(resume, never());
    await expect.poll(() => started).toHaveLength(1);
    expect(await redis.del(`bull:python-queue:${resume.job_id}:lock`)).toBe(1);
    expect(await result).toMatchObject(BROKEN);
    await expect.poll(() => cancelled).toEqual([resume.job_id]);
    expect(started).toHaveLength(1);
  });
});

describe.concurrent("a store that goes away", () => {
  it.for([
    ["new run", jobOf, { code: "store_unavailable", status: 503 }],
    ["resume", resumeOf, { code: "sandbox_execution_failed" }],
  ] as const)(
    "and comes back empty loses a %s that waits: the caller is told",
    async ([_kind, make, lost], context) => {
      const { expect } = context;
      const { jobs, server, counts } = await start(context);
      const result = errorOf(jobs.run(make(), never()));
      await expect.poll(async () => (await counts()).waiting).toBe(1);
      await server.kill();
      await server.start();
      expect(await result).toMatchObject(lost);
    },
  );

  it("while a job runs does not lose its result", async (context) => {
    const { expect } = context;
    const { jobs, server, consume } = await start(context);
    const { work, end } = held();
    const { started } = await consume({ work });
    const result = jobs.run(jobOf({ run_timeout: LONG_MS }), never());
    await expect.poll(() => started).toHaveLength(1);
    await server.kill();
    end();
    await server.start();
    expect(await result).toEqual(OK);
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
    expect(started).toHaveLength(2);
  });

  it("before a job is queued: store_unavailable, and the next job runs", async (context) => {
    const { expect } = context;
    const { jobs, server, consume } = await start(context);
    await consume({ work: async () => OK });
    await server.kill();
    const refused = await errorOf(jobs.run(jobOf(), never()));
    expect(refused).toMatchObject({ code: "store_unavailable", status: 503 });
    await server.start();
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
  });

  it("and comes back is subscribed to again, by producers and workers", async (context) => {
    const { expect } = context;
    const { jobs, server, redis, consume } = await start(context);
    await consume({ work: async () => OK });
    await server.kill();
    await server.start();
    await expect.poll(() => redis.pubsub("CHANNELS", "svc:results:*")).toHaveLength(1);
    await expect.poll(() => redis.pubsub("NUMSUB", "svc:cancel")).toEqual(["svc:cancel", 1]);
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
  });
});

/** A copy of its data that cannot be written has Redis refuse writes in the same way as a full disk. */
describe.concurrent("a store that takes no writes", () => {
  const REFUSAL = { code: "store_unavailable", status: 503 };
  const startRefusing = async (context: TestContext) => {
    const made = await start(context);
    const saved = async (status: "ok" | "err") => {
      await made.redis.bgsave();
      await context.expect
        .poll(() => made.redis.info("persistence"))
        .toMatch(new RegExp(`rdb_bgsave_in_progress:0[^]*rdb_last_bgsave_status:${status}`));
    };
    const [, folder] = (await made.redis.config("GET", "dir")) as [string, string];
    const copy = join(folder, "dump.rdb");
    return {
      ...made,
      refuse: async () => {
        mkdirSync(copy);
        await made.redis.config("SET", "save", "3600 1000000");
        await saved("err");
      },
      take: async () => {
        rmdirSync(copy);
        await saved("ok");
      },
    };
  };

  it.for([
    ["run", () => jobOf({ run_timeout: LONG_MS }), REFUSAL],
    ["resume", longResume, { code: "sandbox_execution_failed" }],
  ] as const)(
    "when a %s ends: its caller is told long before the deadline",
    async ([_kind, make, refusal], context) => {
      const { expect } = context;
      const { jobs, consume, counts, refuse, take } = await startRefusing(context);
      const { work, end } = held();
      const { started } = await consume({ work });
      const result = errorOf(jobs.run(make(), never()));
      await expect.poll(() => started).toHaveLength(1);
      await refuse();
      end();
      expect(await result).toMatchObject(refusal);
      await take();
      expect(await jobs.run(jobOf(), never())).toEqual(OK);
      await expect.poll(counts).toEqual(IDLE);
    },
  );

  it("while a run goes on: it is stopped", async (context) => {
    const { expect } = context;
    const { jobs, consume, refuse } = await startRefusing(context);
    const { started, cancelled } = await consume({ work: (_job, stop) => workFor(LONG_MS, stop) });
    const result = errorOf(jobs.run(longJob(), never()));
    await expect.poll(() => started).toHaveLength(1);
    await refuse();
    expect(await result).toMatchObject(REFUSAL);
    await expect.poll(() => cancelled).toEqual(started);
  });

  it("while a job waits: its caller is told, and no worker is needed for that", async (context) => {
    const { expect } = context;
    const { jobs, consume, counts, refuse, take } = await startRefusing(context);
    const result = errorOf(jobs.run(longJob(), never()));
    await expect.poll(async () => (await counts()).waiting).toBe(1);
    await refuse();
    expect(await result).toMatchObject(REFUSAL);
    await take();
    await consume({ work: async () => OK });
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
    await expect.poll(counts).toEqual(IDLE);
  });

  it("does not make a job that cannot be withdrawn look like one that has started", async (context) => {
    const { expect } = context;
    const { jobs, counts, queue, refuse } = await startRefusing(context);
    const job = longJob();
    const left = caller();
    const result = errorOf(jobs.run(job, left.signal));
    await expect.poll(async () => (await counts()).waiting).toBe(1);
    await refuse();
    await expect(queue.withdraw(job.execution_id)).rejects.toThrow(/^MISCONF/);
    left.leave();
    await result;
  });
});
