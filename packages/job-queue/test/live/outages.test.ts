/** Jobs whose callers were told that the store is unavailable, or that waited too long: none of them runs, whenever the store is back. */
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "@svc/contracts";
import { KeptJobs } from "@svc/job-queue";
import { never, OK, startJobs, type TestJobs } from "@svc/test-kit/components/job-queue";
import { jobOf } from "@svc/test-kit/components/messages";
import { describe, it, type TestContext, vi } from "vitest";

const REFUSED = { code: "store_unavailable", status: 503 };
const IDLE = { waiting: 0, active: 0, delayed: 0 };
const AN_HOUR_MS = 3_600_000;
/** A lock lasts five seconds, stalled jobs are looked for every two and a half, and a job is moved at the second look. */
const FOUND_MS = 5000 + 3 * 2500 + 2500;
/** In which the removal that follows a failure fails, too. */
const REMOVAL_MS = 3500;

const errorOf = (result: Promise<unknown>) => result.catch((error: unknown) => error);

async function start({ onTestFinished }: TestContext, env?: Record<string, string>) {
  const made = await startJobs(env);
  onTestFinished(made.stop);
  /** A worker that tells what was not cancelled before it began. */
  const consume = async () => {
    const ran: string[] = [];
    await made.consume({
      work: async ({ execution_id }, cancelled) => {
        if (!cancelled.aborted) ran.push(execution_id);
        return OK;
      },
    });
    return ran;
  };
  return { ...made, consume };
}

/** The store answers nothing while the work is done. */
async function whileStopped<T>({ server }: Pick<TestJobs, "server">, work: () => Promise<T>): Promise<T> {
  const { pid } = server;
  process.kill(pid, "SIGSTOP");
  try {
    return await work();
  } finally {
    process.kill(pid, "SIGCONT");
  }
}

/** The store is away, and comes back empty. */
async function whileKilled<T>({ server }: Pick<TestJobs, "server">, work: () => Promise<T>): Promise<T> {
  await server.kill();
  try {
    return await work();
  } finally {
    await server.start();
  }
}

describe.concurrent("a job that could not be queued", () => {
  it.for([
    ["stands still", whileStopped],
    ["is killed", whileKilled],
  ] as const)("since the store %s: it never runs", async ([_what, without], context) => {
    const { expect } = context;
    const made = await start(context);
    const ran = await made.consume();
    const refused = await without(made, () => errorOf(made.jobs.run(jobOf(), never())));
    expect(refused).toMatchObject(REFUSED);
    const next = jobOf();
    expect(await made.jobs.run(next, never())).toEqual(OK);
    await expect.poll(made.counts).toEqual(IDLE);
    await sleep(1000);
    expect(ran).toEqual([next.execution_id]);
  });

  it("does not run either when its worker starts later", async (context) => {
    const { expect } = context;
    const made = await start(context);
    const job = jobOf();
    const refused = await whileStopped(made, async () => {
      const error = await errorOf(made.jobs.run(job, never()));
      await sleep(REMOVAL_MS);
      return error;
    });
    expect(refused).toMatchObject(REFUSED);
    expect(await made.redis.exists(`bull:python-queue:${job.execution_id}`)).toBe(1);
    const ran = await made.consume();
    const next = jobOf();
    expect(await made.jobs.run(next, never())).toEqual(OK);
    await expect.poll(made.counts).toEqual(IDLE);
    expect(ran).toEqual([next.execution_id]);
  });

  it("and that nobody would wait for: it never runs, and nothing of it is left", async (context) => {
    const { expect } = context;
    const made = await start(context);
    const kept = new KeptJobs(made.redis);
    const ran = await made.consume();
    const job = jobOf({ kept: 60_000 });
    await kept.create(job, { jobs: 0, bytes: 0 });
    const refused = await whileStopped(made, () => errorOf(made.jobs.submit(job, 1)));
    expect(refused).toMatchObject(REFUSED);
    await expect.poll(made.counts).toEqual(IDLE);
    await sleep(1000);
    expect(ran).toEqual([]);
  });
});

describe.concurrent("a queue that is opened while the store stands still", () => {
  it("refuses jobs while it does, and takes them afterwards", async (context) => {
    const { expect } = context;
    const made = await start(context);
    const ran = await made.consume();
    const jobs = await whileStopped(made, async () => {
      const jobs = made.openProducer();
      context.onTestFinished(() => jobs.close());
      expect(await errorOf(jobs.run(jobOf(), never()))).toMatchObject(REFUSED);
      return jobs;
    });
    await jobs.listen(made.subscriber);
    const job = jobOf();
    expect(await jobs.run(job, never())).toEqual(OK);
    expect(ran).toEqual([job.execution_id]);
  });
});

describe.concurrent("a job that cannot be removed when its time in the queue is over", () => {
  it("never runs, though no worker has heard of its end", async (context) => {
    const { expect } = context;
    const made = await start(context, { JOB_QUEUE_WAIT_MS: "1000" });
    const job = jobOf();
    const result = errorOf(made.jobs.run(job, never()));
    await expect.poll(async () => (await made.counts()).waiting).toBe(1);
    const refused = await whileStopped(made, async () => {
      const error = await result;
      await sleep(REMOVAL_MS);
      return error;
    });
    expect(refused).toMatchObject(REFUSED);
    expect(await made.redis.exists(`bull:python-queue:${job.execution_id}`)).toBe(1);
    const ran = await made.consume();
    const next = jobOf();
    expect(await made.jobs.run(next, never())).toEqual(OK);
    await expect.poll(made.counts).toEqual(IDLE);
    expect(ran).toEqual([next.execution_id]);
  });
});

/** How the queue has a job whose producer is gone. */
const leftBehind = (startWithinMs: number) => ({
  awaited: { replyTo: `svc:results:${newId()}`, startWithinMs },
});

describe.concurrent("a job whose producer is gone", () => {
  it("is not run long after its time in the queue", async (context) => {
    const { expect } = context;
    const { queue, consume, counts, redis } = await start(context);
    const [late, inTime] = [jobOf(), jobOf()];
    await queue.add(late, leftBehind(1000));
    await queue.add(inTime, leftBehind(60_000));
    await sleep(1500);
    const ran = await consume();
    await expect.poll(counts).toEqual(IDLE);
    expect(ran).toEqual([inTime.execution_id]);
    const result = JSON.parse((await redis.get(`svc:result:${late.execution_id}`)) ?? "");
    expect(result).toMatchObject({ ok: false, error: { code: "queue_saturated" } });
  });

  it("is run once more when its worker dies, however long ago it was sent", async (context) => {
    const { expect } = context;
    const { queue, consume, counts, spawnWorker } = await start(context);
    const dying = await spawnWorker(60_000);
    const job = jobOf({ run_timeout: 60_000 });
    await queue.add(job, leftBehind(2000));
    await expect.poll(() => dying.started).toHaveLength(1);
    await sleep(2000);
    dying.kill("SIGKILL");
    const ran = await consume();
    await expect.poll(counts, { timeout: 2 * FOUND_MS }).toEqual(IDLE);
    expect(ran).toEqual([job.execution_id]);
  });
});

it("a worker whose clock is an hour ahead runs what waits, and knows for how long it waited", async (context) => {
  const { expect, onTestFinished } = context;
  const { jobs, consume, counts, stop } = await startJobs();
  onTestFinished(stop);
  const job = jobOf();
  const result = jobs.run(job, never());
  await expect.poll(async () => (await counts()).waiting).toBe(1);
  const now = Date.now;
  const clock = vi.spyOn(Date, "now").mockImplementation(() => now() + AN_HOUR_MS);
  onTestFinished(() => clock.mockRestore());
  const { started, queueMs } = await consume({ work: async () => OK });
  expect(await result).toEqual(OK);
  expect(started).toEqual([job.execution_id]);
  expect(queueMs[0]).toBeLessThan(AN_HOUR_MS / 2);
});
