/** Jobs between a producer and workers, over a real Redis: each is handled once, in order, and has its own result. */
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "@svc/contracts";
import { ProducerStopped } from "@svc/job-queue";
import { held, never, OK, startJobs, type TestJobs, workFor } from "@svc/test-kit/components/job-queue";
import { jobOf, resumeOf } from "@svc/test-kit/components/messages";
import { Queue } from "bullmq";
import { afterEach, describe, expect, it } from "vitest";
import { queueConnection } from "../../src/connection.ts";

const FAILED = { ok: false, error: { code: "input_unavailable", status: 502, message: "Gone." } } as const;
const BROKEN = { ok: false, error: { code: "sandbox_execution_failed", status: 502 } };
const IDLE = { waiting: 0, active: 0, delayed: 0 };

let made: TestJobs;
const start = async (env?: Record<string, string>) => {
  made = await startJobs(env);
  return made;
};
afterEach(() => made.stop());

describe("the result of a job", () => {
  it.each([[OK], [FAILED]])("is the worker's: %j", async (result) => {
    const { jobs, consume } = await start();
    await consume({ work: async () => result });
    expect(await jobs.run(jobOf(), never())).toEqual(result);
  });

  it.each([
    ["new run", jobOf],
    ["resume", resumeOf],
  ] as const)("answers the %s as it was sent, among many", async (_kind, make) => {
    const { jobs, consume } = await start();
    await consume({ work: async ({ code, resume, execution_id }) => echo(code, resume, execution_id) });
    const sent = Array.from({ length: 30 }, (_, at) => make({ code: `é🎉${at}\0` }));
    const results = await Promise.all(sent.map((job) => jobs.run(job, never())));
    expect(results).toEqual(sent.map(({ code, resume, execution_id }) => echo(code, resume, execution_id)));
  });

  it("may have megabytes", async () => {
    const { jobs, consume } = await start();
    const large = { ok: true, answer: { stdout: "x".repeat(8 * 2 ** 20) } } as const;
    await consume({ work: async () => large });
    const results = await Promise.all(Array.from({ length: 4 }, () => jobs.run(jobOf(), never())));
    for (const result of results) expect(result).toEqual(large);
  });

  it("whose announcement is lost is found by a poll", async () => {
    const { jobs, consume, deafen } = await start();
    await consume({ work: async () => OK });
    await deafen();
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
  });

  it("is a broken run when the job fails in the queue itself", async () => {
    const { jobs, consume } = await start();
    await consume({ work: () => Promise.reject(new Error("the worker broke")) });
    expect(await jobs.run(jobOf(), never())).toMatchObject(BROKEN);
  });

  it("is a broken run when the job cannot be read, and the next job is handled", async () => {
    const { jobs, consume } = await start();
    const { started } = await consume({ work: async () => OK });
    expect(await jobs.run({ ...jobOf(), v: 2 } as never, never())).toMatchObject(BROKEN);
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
    expect(started).toHaveLength(1);
  });
});

const echo = (code: string, resume: unknown, id: string) =>
  ({ ok: true, answer: { code, resume, id } }) as const;

describe("an ended job", () => {
  it("leaves of a new run that it was answered; a round stays for other replicas; both expire", async () => {
    const { jobs, consume, redis } = await start();
    await consume({ work: async () => OK });
    const [job, round] = [jobOf({ code: "x".repeat(100_000) }), resumeOf()];
    await Promise.all([jobs.run(job, never()), jobs.run(round, never())]);
    const answered = `svc:result:${job.execution_id}`;
    await expect.poll(() => redis.keys(`*${job.execution_id}*`)).toEqual([answered]);
    await expect.poll(() => redis.get(answered)).toBe("");
    expect(await redis.pttl(answered)).toBeGreaterThan(0);
    await expect.poll(() => made.counts()).toEqual(IDLE);
    expect([await jobs.exists(job), await jobs.exists(round)]).toEqual([false, true]);
    expect(await redis.pttl(`svc:result:${round.job_id}`)).toBeGreaterThan(0);
  });

  it("leaves nothing of a further round in the queue but that it ended; it does not run again", async () => {
    const { jobs, consume, redis, counts } = await start();
    const { started } = await consume({ work: async () => OK });
    const job_id = `${newId()}.2.1`;
    const round = jobOf({ code: "x".repeat(1_000_000), job_id });
    expect(await jobs.run(round, never())).toEqual(OK);
    await expect.poll(counts).toEqual(IDLE);
    expect(await redis.memory("USAGE", `bull:python-queue:${job_id}`)).toBeLessThan(10_000);
    expect(await jobs.exists(round)).toBe(true);
    expect(await jobs.run(round, never())).toEqual(OK);
    await expect.poll(counts).toEqual(IDLE);
    expect(started).toEqual([job_id]);
  });

  it("leaves no copy of its result among the events of the queue", async () => {
    const { jobs, consume, redis } = await start();
    const large = { ok: true, answer: { stdout: "x".repeat(10_000) } } as const;
    await consume({ work: async () => large });
    for (let run = 0; run < 30; run++) await jobs.run(jobOf(), never());
    const events = JSON.stringify(await redis.xrange("bull:python-queue:events", "-", "+"));
    expect(events.length).toBeLessThan(10_000);
  });
});

describe("a look at a job, and its removal", () => {
  it("do not read what it is to run", async () => {
    const { jobs, queue, redis } = await start();
    const job = jobOf({ code: "x".repeat(4 << 20) });
    await jobs.submit(job, 1);
    const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await redis.info("stats"))?.[1]);
    const before = await sent();
    for (let looks = 0; looks < 10; looks++)
      expect(await queue.look(job.execution_id)).toEqual({ state: "waiting" });
    expect(await queue.withdraw(job.execution_id)).toEqual({ state: "removed" });
    expect(await queue.look(job.execution_id)).toEqual({ state: "gone" });
    expect((await sent()) - before).toBeLessThan(100_000);
  });
});

describe("a round that another replica asks for too", () => {
  it("is handled once, and both have its result, also after its end", async () => {
    const { jobs, consume, secondProducer } = await start();
    const { work, end } = held();
    const { started } = await consume({ work });
    const second = await secondProducer();
    const round = resumeOf();
    const first = jobs.run(round, never());
    await expect.poll(() => started).toHaveLength(1);
    const both = Promise.all([first, second.run(round, never())]);
    end();
    expect(await both).toEqual([OK, OK]);
    expect(await second.run(round, never())).toEqual(OK);
    expect(started).toEqual([round.job_id]);
  });
});

describe("jobs that wait", () => {
  it("start in the order in which they came", async () => {
    const { jobs, consume } = await start();
    const { started, most } = await consume({ work: (_job, stop) => workFor(20, stop), concurrency: 1 });
    const sent = Array.from({ length: 10 }, () => jobOf());
    const results = [];
    for (const job of sent) {
      results.push(jobs.run(job, never()));
      await sleep(5);
    }
    expect(await Promise.all(results)).toEqual(sent.map(() => OK));
    expect(started).toEqual(sent.map(({ execution_id }) => execution_id));
    expect(most()).toBe(1);
  });

  it("go behind resumes, which keep their own order", async () => {
    const { jobs, consume, counts } = await start();
    const { work, end } = held();
    const { started } = await consume({ work, concurrency: 1 });
    const results = [jobs.run(jobOf(), never())];
    await expect.poll(() => started).toHaveLength(1);
    const runs = [jobOf(), jobOf()];
    const resumes = [resumeOf(), resumeOf()];
    for (const [count, job] of [...runs, ...resumes].entries()) {
      results.push(jobs.run(job, never(), job.resume === undefined ? 1 : "first"));
      await expect.poll(counts).toEqual({ waiting: count + 1, active: 1, delayed: 0 });
    }
    end();
    expect(await Promise.all(results)).toEqual(results.map(() => OK));
    const expected = [
      ...resumes.map(({ job_id }) => job_id),
      ...runs.map(({ execution_id }) => execution_id),
    ];
    expect(started.slice(1)).toEqual(expected);
  });

  it("of a caller with many go behind the first one of another caller", async () => {
    const { jobs, consume, counts } = await start();
    const { work, end } = held();
    const { started } = await consume({ work, concurrency: 1 });
    const results = [jobs.run(jobOf(), never())];
    await expect.poll(() => started).toHaveLength(1);
    const many = Array.from({ length: 30 }, () => jobOf());
    const others = [jobOf(), jobOf()];
    const sent = [
      ...many.map((job, at) => ({ job, place: at + 1 })),
      ...others.map((job) => ({ job, place: 1 })),
    ];
    for (const [count, { job, place }] of sent.entries()) {
      results.push(jobs.run(job, never(), place));
      await expect.poll(counts).toEqual({ waiting: count + 1, active: 1, delayed: 0 });
    }
    end();
    expect(await Promise.all(results)).toEqual(results.map(() => OK));
    const [first, ...rest] = many;
    const expected = [first, ...others, ...rest].map((job) => job?.execution_id);
    expect(started.slice(1)).toEqual(expected);
  });

  it("are refused at once when this process has too many in hand, but for those that go first", async () => {
    const { jobs, consume, counts } = await start({ JOB_QUEUE_LIMIT: "3" });
    const inHand = Array.from({ length: 3 }, () => jobs.run(jobOf(), never()));
    await expect.poll(counts).toMatchObject({ waiting: 3 });
    await expect(jobs.run(jobOf(), never())).rejects.toMatchObject({
      code: "queue_saturated",
      headers: { "retry-after": "5" },
    });
    const resume = jobs.run(resumeOf(), never(), "first");
    await expect.poll(counts).toMatchObject({ waiting: 4 });
    await consume({ work: async () => OK });
    expect(await Promise.all([...inHand, resume])).toEqual([OK, OK, OK, OK]);
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
  });

  it("while no worker lives are handled by the next one", async () => {
    const { jobs, consume, counts } = await start();
    const results = [jobs.run(jobOf(), never()), jobs.run(resumeOf(), never())];
    await expect.poll(counts).toEqual({ waiting: 2, active: 0, delayed: 0 });
    await consume({ work: async () => OK });
    expect(await Promise.all(results)).toEqual([OK, OK]);
  });
});

describe("a producer that stops", () => {
  it("cancels new runs, and answers as one that stops", async () => {
    const { jobs, consume } = await start();
    const worker = await consume({ work: (_job, stop) => workFor(60_000, stop), concurrency: 1 });
    const running = jobOf();
    const results = [jobs.run(running, never())];
    await expect.poll(() => worker.started).toEqual([running.execution_id]);
    results.push(jobs.run(jobOf(), never()));
    const refused = Promise.all(
      results.map((result) => expect(result).rejects.toBeInstanceOf(ProducerStopped)),
    );
    jobs.stop();
    await refused;
    await expect.poll(() => worker.cancelled).toContain(running.execution_id);
    await expect(jobs.run(jobOf(), never())).rejects.toMatchObject({ code: "shutting_down" });
    await expect.poll(() => made.counts()).toEqual(IDLE);
    // The end of the first may start the second before it is withdrawn.
    expect(worker.cancelled).toEqual(worker.started);
  });

  it("leaves what goes on with a program to who asks for it again", async () => {
    const { jobs, consume, secondProducer } = await start();
    const second = await secondProducer();
    const { work, end } = held();
    const { started } = await consume({ work });
    const round = resumeOf();
    const left = jobs.run(round, never(), "first");
    await expect.poll(() => started).toHaveLength(1);
    jobs.stop();
    await expect(left).rejects.toBeInstanceOf(ProducerStopped);
    const again = second.run(round, never(), "first");
    end();
    expect(await again).toEqual(OK);
    expect(started).toHaveLength(1);
  });

  it("still gives results that are there", async () => {
    const { jobs, consume, deafen, redis } = await start();
    await consume({ work: async () => OK });
    await deafen();
    const job = jobOf();
    const result = jobs.run(job, never());
    await expect.poll(() => redis.exists(`svc:result:${job.execution_id}`)).toBe(1);
    jobs.stop();
    expect(await result).toEqual(OK);
  });
});

describe("the concurrency of a worker", () => {
  it("is shared by new runs and resumes", async () => {
    const { jobs, consume } = await start();
    const { most } = await consume({ work: (_job, stop) => workFor(40, stop), concurrency: 2 });
    const all = Array.from({ length: 24 }, (_, at) => jobs.run(at % 2 ? resumeOf() : jobOf(), never()));
    expect(await Promise.all(all)).toEqual(all.map(() => OK));
    expect(most()).toBe(2);
  });

  it.each([
    ["new run", jobOf],
    ["resume", resumeOf],
  ] as const)("leaves a %s to another worker when it is used up", async (_kind, make) => {
    const { jobs, consume } = await start();
    const { work, end } = held();
    const full = await consume({ work, concurrency: 1 });
    const blocking = jobs.run(jobOf(), never());
    await expect.poll(() => full.started).toHaveLength(1);
    const idle = await consume({ work: async () => OK, concurrency: 1 });
    for (let count = 0; count < 6; count++) expect(await jobs.run(make(), never())).toEqual(OK);
    expect([full.started.length, idle.started.length]).toEqual([1, 6]);
    end();
    expect(await blocking).toEqual(OK);
  });

  it("is left by a worker that closes: it ends what it has and takes no more", async () => {
    const { jobs, consume, redis } = await start();
    const { work, end } = held();
    const closing = await consume({ work, concurrency: 2 });
    const running = jobs.run(jobOf(), never());
    await expect.poll(() => closing.started).toHaveLength(1);
    const waits = async () => /cmd=bzpopmin/.test(String(await redis.client("LIST")));
    await expect.poll(waits).toBe(true);
    const closed = closing.close();
    // A job that the store hands out at this very moment would still be done.
    await expect.poll(waits).toBe(false);
    const next = jobs.run(jobOf(), never());
    end();
    expect(await running).toEqual(OK);
    await closed;
    expect(closing.started).toHaveLength(1);
    await consume({ work: async () => OK });
    expect(await next).toEqual(OK);
  });
});

it("a job that another program has added to the queue is handled", async () => {
  const { consume, redis } = await start();
  const { started } = await consume({ work: async () => OK });
  const queue = new Queue("python-queue", { connection: queueConnection(redis) });
  await queue.add("exec", { ...jobOf(), enqueued_at: Date.now() }, { jobId: "added-elsewhere" });
  await expect.poll(() => started).toHaveLength(1);
  await queue.close();
});
