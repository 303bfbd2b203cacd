/** Jobs that nobody waits for: how they end is kept, whoever dies on the way, and a caller's cancel and a worker's end agree. */
import { type Job, type JobResult, newId } from "@svc/contracts";
import { type KeptJob, KeptJobs } from "@svc/job-queue";
import { held, OK, startJobs, workFor } from "@svc/test-kit/components/job-queue";
import { jobOf } from "@svc/test-kit/components/messages";
import { describe, expect, it, onTestFinished } from "vitest";

const LIFE_MS = 60_000;
const NO_LIMIT = { jobs: 0, bytes: 0 };
const LONG_MS = 60_000;
const DAY_MS = 86_400_000;
/** A lock lasts five seconds, stalled jobs are looked for every two and a half, and a job is moved at the second look. */
const FOUND_MS = 5000 + 3 * 2500 + 2500;
const ended = (code: string): JobResult => ({
  ok: false,
  error: { code, status: 409, message: "It ended." },
});
const CANCELLED = ended("execution_cancelled");

async function start() {
  const made = await startJobs();
  onTestFinished(made.stop);
  const kept = new KeptJobs(made.redis);
  /** Notes and queues a job, as the API does. */
  const submit = async (change: Partial<Job> = {}): Promise<Job> => {
    const job = jobOf({ kept: LIFE_MS, run_timeout: LONG_MS, ...change });
    await kept.create(job, NO_LIMIT);
    await made.jobs.submit(job, 1);
    return job;
  };
  const find = async ({ execution_id }: Job) => kept.find(execution_id);
  const statusOf = async (job: Job) => (await find(job))?.status;
  return { ...made, kept, submit, find, statusOf };
}
const named = ({ execution_id: id, output_namespace: namespace }: Job) => ({ id, namespace });

describe("a job", () => {
  it.each<[string, JobResult, KeptJob["status"]]>([
    ["with an answer is completed", OK, "completed"],
    ["with an error is failed", ended("sandbox_execution_failed"), "failed"],
    ["that was cancelled is cancelled", CANCELLED, "cancelled"],
  ])("%s, and its end is kept for a while", async (_what, result, status) => {
    const { submit, consume, find, redis, kept } = await start();
    await consume({ work: async () => result });
    const job = await submit();
    await expect.poll(() => find(job)).toMatchObject({ status, end: result, request_id: "request" });
    const found = await find(job);
    expect(found?.ended_at).toBeGreaterThanOrEqual(found?.started_at ?? Number.NaN);
    const left = await redis.pttl(`svc:job:${job.execution_id}`);
    expect(left).toBeGreaterThan(LIFE_MS / 2);
    expect(left).toBeLessThanOrEqual(LIFE_MS);
    expect(await kept.open(job.output_namespace)).toEqual([]);
  });

  it("whose worker is killed is run by another one, once", async () => {
    const { submit, spawnWorker, consume, find, statusOf } = await start();
    const worker = await spawnWorker(LONG_MS);
    const job = await submit();
    await expect.poll(() => worker.started).toHaveLength(1);
    expect(await statusOf(job)).toBe("running");
    worker.kill("SIGKILL");
    const other = await consume({ work: async () => OK });
    await expect.poll(() => statusOf(job), { timeout: 2 * FOUND_MS }).toBe("completed");
    expect(other.started).toEqual([job.execution_id]);
    expect((await find(job))?.end).toEqual(OK);
  });

  it("whose worker ends in order goes to the next one at once", async () => {
    const { submit, consume, statusOf, config } = await start();
    const stopping = new AbortController();
    const first = await consume({
      work: async () => {
        await workFor(LONG_MS, stopping.signal);
        return ended("shutting_down");
      },
    });
    const job = await submit();
    await expect.poll(() => first.started).toHaveLength(1);
    const closed = first.close();
    stopping.abort();
    await closed;
    expect(await statusOf(job)).toBe("running");
    const next = await consume({ work: async () => OK });
    await expect.poll(() => statusOf(job)).toBe("completed");
    expect(next.started).toEqual([job.execution_id]);
    expect(config.SVC_JOB_RETENTION_SECONDS).toBe(3600);
  });

  it("that no runner has a slot for waits on, before others, until one has", async () => {
    const { submit, consume, find, statusOf } = await start();
    const seen: (string | undefined)[] = [];
    const { started } = await consume({
      concurrency: 1,
      work: async ({ execution_id: id }) => {
        if (id !== job.execution_id || started.length > 3) return OK;
        seen.push(await statusOf(job));
        return ended("queue_saturated");
      },
    });
    const job = await submit();
    const other = await submit();
    await expect.poll(() => statusOf(other)).toBe("completed");
    expect(await find(job)).toMatchObject({ status: "completed", end: OK });
    expect(seen).toEqual(["running", "running", "running"]);
    expect(started).toEqual([...Array(4).fill(job.execution_id), other.execution_id]);
  });

  it("that went back to the queue without a start is queued, and can be cancelled there", async () => {
    const { submit, consume, kept, find, statusOf, counts } = await start();
    const first = await consume({ work: async () => ended("queue_saturated"), concurrency: 1 });
    const job = await submit();
    await expect.poll(() => first.started.length).toBeGreaterThan(0);
    await first.close();
    expect(await find(job)).toMatchObject({ status: "queued" });
    expect((await find(job))?.started_at).toBeUndefined();
    expect(await kept.cancel(named(job), CANCELLED, LIFE_MS)).toBe("queued");
    expect(await statusOf(job)).toBe("cancelled");
    const { started } = await consume({ work: async () => OK });
    await expect.poll(counts).toMatchObject({ waiting: 0, active: 0 });
    expect(started).toEqual([]);
  });

  it("whose end was asked for does not go back to the queue", async () => {
    const { submit, consume, kept, statusOf, counts } = await start();
    const end = Promise.withResolvers<JobResult>();
    const { started } = await consume({ work: () => end.promise });
    const job = await submit();
    await expect.poll(() => started).toHaveLength(1);
    expect(await kept.cancel(named(job), CANCELLED, LIFE_MS)).toBe("running");
    end.resolve(ended("queue_saturated"));
    await expect.poll(() => statusOf(job)).toBe("cancelled");
    await expect.poll(counts).toMatchObject({ waiting: 0, active: 0 });
    expect(started).toHaveLength(1);
  });

  it("that nobody knows any more is not run", async () => {
    const { submit, consume, kept, counts } = await start();
    const job = await submit();
    await kept.remove(named(job));
    const { started } = await consume({ work: async () => OK });
    await expect.poll(counts).toMatchObject({ waiting: 0, active: 0 });
    expect(started).toEqual([]);
  });
});

describe("what is stored", () => {
  it("counts the end of a job and its events for as long as they are kept", async () => {
    const { submit, consume, kept, redis, statusOf } = await start();
    const stored = async (namespace: string) =>
      Number((await redis.hget(`svc:stored:${namespace}:bytes`, "total")) ?? 0);
    const answer: JobResult = { ok: true, answer: { stdout: "x".repeat(10_000) } };
    await consume({ work: async () => answer });
    const job = await submit();
    const other = await submit();
    const { output_namespace: namespace } = job;
    await expect.poll(() => Promise.all([job, other].map(statusOf))).toEqual(["completed", "completed"]);
    const before = await stored(namespace);
    expect(before).toBeGreaterThan(2 * 10_000);
    expect(await redis.pttl(`svc:stored:${namespace}`)).toBeGreaterThan(LIFE_MS - 10_000);
    // A second end of it counts nothing.
    await kept.end(named(job), answer, LIFE_MS);
    expect(await stored(namespace)).toBe(before);
    await kept.remove(named(job));
    await kept.remove(named(job));
    expect(await stored(namespace)).toBe(before / 2);
    await kept.remove(named(other));
    expect(await redis.keys("svc:stored:*")).toEqual([]);
  });

  it("counts a job from when it is noted, by its bytes, until it is removed; one that is too large is not noted", async () => {
    const { kept, redis } = await start();
    const total = async () => Number(await redis.hget(bytesKey, "total"));
    const most = { jobs: 0, bytes: 250_000 };
    const large = () => jobOf({ code: "é".repeat(50_000) });
    const [first, second, third] = [large(), large(), large()] as const;
    const bytesKey = `svc:stored:${first.output_namespace}:bytes`;
    expect([await kept.create(first, most), await kept.create(second, most)]).toEqual([1, 2]);
    expect(await total()).toBeGreaterThan(200_000);
    expect(await redis.pttl(bytesKey)).toBeGreaterThan(DAY_MS - LIFE_MS);
    expect(await kept.create(third, most)).toBe("too_much");
    expect([await kept.find(third.execution_id), (await kept.open(third.output_namespace)).length]).toEqual([
      undefined,
      2,
    ]);
    await kept.end(named(first), OK, LIFE_MS);
    expect(await total()).toBeLessThan(150_000);
    expect(await kept.create(third, most)).toBe(2);
    for (const job of [first, second, third]) await kept.remove(named(job));
    expect(await redis.keys("svc:stored:*")).toEqual([]);
  });

  it("counts all of the events, however large each one is", async () => {
    const { submit, kept, redis } = await start();
    const job = await submit();
    const { execution_id: id, output_namespace: namespace } = job;
    const sizes = [...Array<number>(500).fill(10), ...Array<number>(50).fill(20_000)];
    for (const size of sizes) await redis.xadd(`svc:events:${id}`, "*", "e", "x".repeat(size));
    await kept.cancel(named(job), CANCELLED, LIFE_MS);
    expect(Number(await redis.hget(`svc:stored:${namespace}:bytes`, "total"))).toBeGreaterThan(50 * 20_000);
  });
});

describe("a cancel", () => {
  it("ends a job that waits: it never runs", async () => {
    const { submit, consume, kept, statusOf, counts } = await start();
    const job = await submit();
    expect(await kept.cancel(named(job), CANCELLED, LIFE_MS)).toBe("queued");
    expect(await statusOf(job)).toBe("cancelled");
    const { started } = await consume({ work: async () => OK });
    await expect.poll(counts).toMatchObject({ waiting: 0, active: 0 });
    expect(started).toEqual([]);
  });

  it("reaches a job that runs, through its worker", async () => {
    const { submit, consume, kept, jobs, statusOf } = await start();
    const { started } = await consume({ work: (_job, signal) => workFor(LONG_MS, signal) });
    const job = await submit();
    await expect.poll(() => started).toHaveLength(1);
    expect(await kept.cancel(named(job), CANCELLED, LIFE_MS)).toBe("running");
    expect(await statusOf(job)).toBe("running");
    await jobs.cancel(job.execution_id);
    await expect.poll(() => statusOf(job)).toBe("cancelled");
  });

  it("that no worker hears of ends the job all the same", async () => {
    const { submit, consume, kept, jobs, statusOf } = await start();
    const worker = await consume({ work: (_job, signal) => workFor(LONG_MS, signal) });
    const job = await submit();
    await expect.poll(() => worker.started).toHaveLength(1);
    await worker.deafen();
    expect(await kept.cancel(named(job), CANCELLED, LIFE_MS)).toBe("running");
    await jobs.cancel(job.execution_id);
    await expect.poll(() => statusOf(job)).toBe("cancelled");
    expect(worker.cancelled).toEqual([job.execution_id]);
  });

  it("while the worker's connection is lost is heard of when it is back", async () => {
    const { submit, consume, jobs, statusOf, redis } = await start();
    const { started } = await consume({ work: (_job, signal) => workFor(LONG_MS, signal) });
    const job = await submit();
    await expect.poll(() => started).toHaveLength(1);
    const lost = redis.call("CLIENT", "KILL", "TYPE", "pubsub");
    await jobs.cancel(job.execution_id);
    expect(await lost).toBe(2);
    await expect.poll(() => statusOf(job), { timeout: 1000 }).toBe("cancelled");
  });

  it("that was accepted counts, though the job ended with a result before it heard of it", async () => {
    const { submit, consume, kept, statusOf, find } = await start();
    const work = held();
    const { started } = await consume({ work: work.work });
    const job = await submit();
    await expect.poll(() => started).toHaveLength(1);
    expect(await kept.cancel(named(job), CANCELLED, LIFE_MS)).toBe("running");
    work.end();
    await expect.poll(() => statusOf(job)).toBe("cancelled");
    expect((await find(job))?.end).toMatchObject({ ok: false, error: { code: "execution_cancelled" } });
    expect(await kept.open(job.output_namespace)).toEqual([]);
  });

  it("of a job whose worker dies before it hears of it: the next worker does not run it", async () => {
    const { submit, spawnWorker, consume, kept, statusOf } = await start();
    const worker = await spawnWorker(LONG_MS);
    const job = await submit();
    await expect.poll(() => worker.started).toHaveLength(1);
    worker.kill("SIGKILL");
    expect(await kept.cancel(named(job), CANCELLED, LIFE_MS)).toBe("running");
    const { started } = await consume({ work: async () => OK });
    await expect.poll(() => statusOf(job), { timeout: 2 * FOUND_MS }).toBe("cancelled");
    expect(started).toEqual([]);
  });

  it("and an end: whichever is first counts", async () => {
    const { submit, consume, kept, statusOf, find } = await start();
    const work = held();
    const { started } = await consume({ work: work.work });
    const job = await submit();
    await expect.poll(() => started).toHaveLength(1);
    work.end();
    await expect.poll(() => statusOf(job)).toBe("completed");
    expect(await kept.cancel(named(job), CANCELLED, LIFE_MS)).toBe("completed");
    await kept.end(named(job), CANCELLED, LIFE_MS);
    expect((await find(job))?.end).toEqual(OK);
    expect(
      await kept.cancel({ id: newId(), namespace: "tenant:user:alice" }, CANCELLED, LIFE_MS),
    ).toBeUndefined();
  });
});

describe("the jobs of a caller", () => {
  it("are listed though more than a page of newer ones is not kept any more", async () => {
    const { kept, redis } = await start();
    const old = jobOf();
    await kept.create(old, NO_LIMIT);
    for (let at = 0; at < 230; at++) {
      const job = jobOf();
      await kept.create(job, NO_LIMIT);
      await redis.del(`svc:job:${job.execution_id}`);
    }
    const { jobs, next } = await kept.list("tenant:user:alice", undefined);
    expect([jobs.map(({ id }) => id), next]).toEqual([[old.execution_id], undefined]);
  });

  it("are listed the newest first, a hundred on a page, each once, and nobody else's", async () => {
    const { kept } = await start();
    const ids: string[] = [];
    for (let at = 0; at < 230; at++) {
      const job = jobOf();
      ids.unshift(job.execution_id);
      await kept.create(job, NO_LIMIT);
    }
    await kept.create(jobOf({ output_namespace: "tenant:user:bob" }), NO_LIMIT);
    const listed: KeptJob[] = [];
    const pages: number[] = [];
    let after: Parameters<typeof kept.list>[1];
    do {
      const page = await kept.list("tenant:user:alice", after);
      listed.push(...page.jobs);
      pages.push(page.jobs.length);
      after = page.next;
    } while (after !== undefined);
    expect(pages).toEqual([100, 100, 30]);
    expect(listed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(listed.map(({ created_at }) => created_at)).toEqual(
      listed.map(({ created_at }) => created_at).toSorted((left, right) => right - left),
    );
  });

  it("of one millisecond are listed once each, though the last one of a page was removed meanwhile", async () => {
    const { kept, redis } = await start();
    const list = "svc:jobs:tenant:user:alice";
    const all: string[] = [];
    for (let at = 0; at < 150; at++) {
      const job = jobOf();
      all.push(job.execution_id);
      await kept.create(job, NO_LIMIT);
    }
    const now = Date.now();
    for (const id of all) {
      await redis.zadd(list, now, id);
      await redis.hset(`svc:job:${id}`, "created_at", now);
    }
    const first = await kept.list("tenant:user:alice", undefined);
    const last = first.jobs.at(-1) as KeptJob;
    await kept.remove({ id: last.id, namespace: "tenant:user:alice" });
    const second = await kept.list("tenant:user:alice", first.next);
    const ids = [...first.jobs, ...second.jobs].map(({ id }) => id);
    expect([first.jobs.length, second.jobs.length]).toEqual([100, 50]);
    expect(ids.toSorted()).toEqual(all.toSorted());
  });

  it("are listed for as long as they are kept, a week after a day in the queue", async () => {
    const { kept, redis } = await start();
    const job = jobOf({ kept: 7 * DAY_MS });
    const list = `svc:jobs:${job.output_namespace}`;
    await redis.zadd(list, Date.now() - 7.9 * DAY_MS, "kept", Date.now() - 8.1 * DAY_MS, "forgotten");
    await kept.create(job, NO_LIMIT);
    expect(await redis.zrange(list, "0", "-1")).toEqual(["kept", job.execution_id]);
    expect(await redis.pttl(list)).toBeGreaterThan(7.9 * DAY_MS);
    expect(await redis.pttl(`svc:job:${job.execution_id}`)).toBeLessThanOrEqual(DAY_MS);
  });

  it("are limited while they have not ended", async () => {
    const { kept } = await start();
    const [first, second, third] = [jobOf(), jobOf(), jobOf()] as const;
    const most = { jobs: 2, bytes: 0 };
    expect([await kept.create(first, most), await kept.create(second, most)]).toEqual([1, 2]);
    expect(await kept.create(third, most)).toBe("too_many");
    expect(await kept.find(third.execution_id)).toBeUndefined();
    await kept.end(named(first), OK, LIFE_MS);
    expect(await kept.create(third, most)).toBe(2);
  });
});
