/** Live jobs between an API and workers, over a real Redis: a resume passes no queue, and nothing of it may get lost. */
import { setTimeout as sleep } from "node:timers/promises";
import { JOB_HINTS_CHANNEL, jobHint, liveJobKey, liveWaitingKey, newId, ServiceError } from "@svc/contracts";
import { createLog, createRedis } from "@svc/service-kit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Jobs } from "../../../api/src/exec/jobs.ts";
import { jobOf, never, OK, startJobs, type TestJobs, workFor } from "../../../api/test/support/consumer.ts";
import { startWorker as startOne, type TestWorker } from "../support/consumers.ts";

/** A worker's death is known after three seconds, two polls later to the API. */
const KNOWN_MS = 7000;
const LONG_MS = 30_000;
const LOST = { code: "sandbox_execution_failed" };

let made: TestJobs;
let workers: TestWorker[];
let stops: (() => Promise<void>)[];
const start = async (env?: Record<string, string>) => {
  made = await startJobs(env);
  return made;
};
beforeEach(() => {
  workers = [];
  stops = [];
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close()));
  await Promise.all(stops.map((stop) => stop()));
  await made.stop();
});

const startWorker = async (work: Parameters<typeof startOne>[1], concurrency?: number) => {
  const worker = await startOne(made.server.url, work, concurrency);
  workers.push(worker);
  return worker;
};
const resumeOf = () => {
  const resume = { runner_url: "http://127.0.0.1:1", round: 2, answered_call_ids: ["call_001"] };
  return { ...jobOf({ resume }), job_id: `${newId()}.2.1` };
};
const stateOf = (name: string) => made.redis.hget(liveJobKey(name), "state");
const waiting = () => made.redis.llen(liveWaitingKey("python"));
const errorOf = (result: Promise<unknown>) => result.catch((error: unknown) => error);
/** Work that ends when it is told to. */
function held() {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { end, work: () => ended.then(() => OK) };
}

/** Another replica of the API. */
async function secondReplica(): Promise<Jobs> {
  const log = createLog("api", made.config);
  const connections = [
    createRedis(made.config, log, { use: "commands" }),
    createRedis(made.config, log, { use: "blocking" }),
  ] as const;
  const jobs = new Jobs(made.config, log, connections[0]);
  await jobs.listen(connections[1]);
  stops.push(async () => {
    await jobs.close();
    for (const connection of connections) connection.disconnect();
  });
  return jobs;
}

describe("a live job", () => {
  it("reaches a worker as it was sent and comes back, without the queue; what stays of it passes", async () => {
    const { jobs, redis, queue } = await start();
    await startWorker(async (job) => ({ ok: true, answer: { echo: job.resume, by: job.request_id } }), 4);
    const sent = Array.from({ length: 20 }, (_, at) => ({ ...resumeOf(), request_id: `é🎉${at}` }));
    const results = await Promise.all(sent.map((job) => jobs.run(job, never())));
    expect(results).toEqual(
      sent.map(({ resume, request_id }) => ({ ok: true, answer: { echo: resume, by: request_id } })),
    );
    expect(await queue.getJobCounts("completed", "waiting", "active")).toEqual({
      completed: 0,
      waiting: 0,
      active: 0,
    });
    const keys = await redis.keys("svc:live:*");
    expect(keys).toHaveLength(sent.length);
    for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(0);
  });

  it("of which another replica asks too is done once, and both have its answer", async () => {
    const { jobs } = await start();
    const second = await secondReplica();
    const { begun } = await startWorker((_job, stop) => workFor(500, stop), 4);
    const job = resumeOf();
    const first = jobs.run(job, never());
    await expect.poll(() => begun).toHaveLength(1);
    expect(await Promise.all([first, second.run(job, never())])).toEqual([OK, OK]);
    expect(await second.run(job, never())).toEqual(OK);
    expect(begun).toHaveLength(1);
  });

  it("whose hint was lost is begun a poll later", async () => {
    const { jobs, redis } = await start();
    const { begun, deafen, hear } = await startWorker(async () => OK);
    await deafen();
    const result = jobs.run(resumeOf(), never());
    await expect.poll(waiting).toBe(1);
    await hear();
    expect(await redis.pubsub("NUMSUB", JOB_HINTS_CHANNEL)).toEqual([JOB_HINTS_CHANNEL, 1]);
    expect(begun).toEqual([]);
    expect(await result).toEqual(OK);
  });

  it("that nobody takes is refused as safe to repeat, and never begun", async () => {
    const { jobs } = await start({ JOB_QUEUE_WAIT_MS: "300" });
    const job = resumeOf();
    expect(await errorOf(jobs.run(job, never()))).toMatchObject({ code: "queue_saturated", status: 503 });
    expect([await waiting(), await stateOf(job.job_id)]).toEqual([0, "withdrawn"]);
    const { begun } = await startWorker(async () => OK);
    await sleep(300);
    expect(begun).toEqual([]);
  });

  it("that waits while no worker lives is done by the next one", async () => {
    const { jobs } = await start();
    const result = jobs.run(resumeOf(), never());
    await expect.poll(waiting).toBe(1);
    await startWorker(async () => OK);
    expect(await result).toEqual(OK);
  });
});

describe("permits", () => {
  it("are shared by live and queued jobs", async () => {
    const { jobs } = await start();
    const worker = await startWorker((_job, stop) => workFor(40, stop), 2);
    const all = Array.from({ length: 24 }, (_, at) => jobs.run(at % 2 ? resumeOf() : jobOf(), never()));
    expect(await Promise.all(all)).toEqual(all.map(() => OK));
    expect(worker.most()).toBe(2);
  });

  it.each(["live", "queued"] as const)("a full worker leaves a %s job to an idle one", async (kind) => {
    const { jobs } = await start();
    const { work, end } = held();
    const full = await startWorker(work);
    const blocking = jobs.run(resumeOf(), never());
    await expect.poll(() => full.begun).toHaveLength(1);
    const idle = await startWorker(async () => OK);
    // The idle worker may be the one that the queue wakes, so several are sent.
    for (let count = 0; count < 6; count++) {
      const began = performance.now();
      expect(await jobs.run(kind === "live" ? resumeOf() : jobOf(), never())).toEqual(OK);
      expect(performance.now() - began).toBeLessThan(1000);
    }
    expect([full.begun.length, idle.begun.length]).toEqual([1, 6]);
    end();
    expect(await blocking).toEqual(OK);
  });

  it("go to live jobs first", async () => {
    const { jobs } = await start();
    const { work, end } = held();
    const worker = await startWorker(work);
    const [running, queued, resume] = [jobOf(), jobOf(), resumeOf()];
    const results = [jobs.run(running, never())];
    await expect.poll(() => worker.begun).toHaveLength(1);
    results.push(jobs.run(queued, never()));
    await sleep(100);
    results.push(jobs.run(resume, never()));
    await expect.poll(waiting).toBe(1);
    // Its hint has come as well.
    await sleep(100);
    end();
    expect(await Promise.all(results)).toEqual([OK, OK, OK]);
    expect(worker.begun).toEqual([running.execution_id, resume.job_id, queued.execution_id]);
  });

  it("a queued job that a live one keeps waiting runs when there is room, and counts as waiting until then", async () => {
    const { jobs, queue } = await start();
    const { work, end } = held();
    const worker = await startWorker(work);
    const resume = jobs.run(resumeOf(), never());
    await expect.poll(() => worker.begun).toHaveLength(1);
    const queued = jobs.run(jobOf(), never());
    await expect.poll(() => queue.getJobCounts("waiting", "active")).toEqual({ waiting: 1, active: 0 });
    await sleep(300);
    expect(await queue.getJobCounts("waiting", "active")).toEqual({ waiting: 1, active: 0 });
    const another = jobs.run(resumeOf(), never());
    await expect.poll(waiting).toBe(1);
    const told = await worker.gauges([queue]);
    expect(told).toContain('svc_queue_jobs{queue="python-queue",state="waiting"} 2');
    expect(told).toContain('svc_queue_jobs{queue="python-queue",state="active"} 1');
    end();
    expect(await Promise.all([resume, queued, another])).toEqual([OK, OK, OK]);
    expect(await worker.gauges([queue])).toContain('svc_queue_jobs{queue="python-queue",state="active"} 0');
  });
});

describe("a caller that gives up", () => {
  const left = () => {
    const controller = new AbortController();
    return {
      signal: controller.signal,
      leave: () => controller.abort(new ServiceError("execution_cancelled")),
    };
  };

  it("before the job is taken: it is never begun", async () => {
    const { jobs } = await start();
    const { signal, leave } = left();
    const job = resumeOf();
    const result = errorOf(jobs.run(job, signal));
    await expect.poll(waiting).toBe(1);
    leave();
    expect(await result).toMatchObject({ code: "execution_cancelled" });
    expect([await waiting(), await stateOf(job.job_id)]).toEqual([0, "withdrawn"]);
    const { begun } = await startWorker(async () => OK);
    await sleep(300);
    expect(begun).toEqual([]);
  });

  it("while it is in work: it is cancelled within a second, and its result is not kept", async () => {
    const { jobs } = await start();
    const worker = await startWorker((_job, stop) => workFor(LONG_MS, stop));
    const { signal, leave } = left();
    const job = resumeOf();
    const result = errorOf(jobs.run(job, signal));
    await expect.poll(() => worker.begun).toHaveLength(1);
    leave();
    expect(await result).toMatchObject({ code: "execution_cancelled" });
    await expect.poll(() => worker.cancelled, { timeout: 1000 }).toEqual([job.job_id]);
    await sleep(100);
    expect(await stateOf(job.job_id)).toBe("withdrawn");
  });

  it("while it is in work where no cancellation is heard: the worker finds out when it tells that it lives", async () => {
    const { jobs } = await start();
    const worker = await startWorker((_job, stop) => workFor(LONG_MS, stop));
    const { signal, leave } = left();
    const job = resumeOf();
    const result = errorOf(jobs.run(job, signal));
    await expect.poll(() => worker.begun).toHaveLength(1);
    await worker.deafen();
    leave();
    expect(await result).toMatchObject({ code: "execution_cancelled" });
    await expect.poll(() => worker.cancelled, { timeout: 3000 }).toEqual([job.job_id]);
  });

  it("at the outermost deadline", async () => {
    const { jobs } = await start({
      SANDBOX_COMPILE_TIMEOUT: "1",
      JOB_PRIME_ALLOWANCE_MS: "1",
      JOB_POSTPROCESS_ALLOWANCE_MS: "1",
      JOB_WAIT_GRACE_MS: "100",
    });
    const worker = await startWorker((_job, stop) => workFor(LONG_MS, stop));
    const job = { ...resumeOf(), run_timeout: 100 };
    expect(await errorOf(jobs.run(job, never()))).toMatchObject({ code: "execution_timeout", status: 504 });
    await expect.poll(() => worker.cancelled).toEqual([job.job_id]);
  });
});

describe("a worker that dies", () => {
  it("with a job in work: the API knows within seconds, and no other worker begins it", async () => {
    const { jobs, queue } = await start();
    const dying = await startWorker(() => workFor(LONG_MS, never()));
    const job = resumeOf();
    const began = performance.now();
    const result = errorOf(jobs.run(job, never()));
    await expect.poll(() => dying.begun).toHaveLength(1);
    dying.die();
    const other = await startWorker(async () => OK);
    expect(await result).toMatchObject(LOST);
    expect(performance.now() - began).toBeLessThan(KNOWN_MS);
    expect(other.begun).toEqual([]);
    expect(await other.gauges([queue])).toContain('state="active"} 0');
  });

  it("only seemingly: what it still finds out reaches nobody, and it is told to stop", async () => {
    const { jobs, redis } = await start();
    const worker = await startWorker((_job, stop) => workFor(LONG_MS, stop));
    const job = resumeOf();
    const result = errorOf(jobs.run(job, never()));
    await expect.poll(() => worker.begun).toHaveLength(1);
    // As if it had been silent for too long.
    await redis.hset(liveJobKey(job.job_id), { state: "taken", worker: "another", at: Date.now() });
    await expect.poll(() => worker.cancelled, { timeout: 3000 }).toEqual([job.job_id]);
    expect(await redis.hget(liveJobKey(job.job_id), "state")).not.toBe("ended");
    await redis.del(liveJobKey(job.job_id));
    expect(await result).toMatchObject(LOST);
    expect(await stateOf(job.job_id)).toBe("withdrawn");
  });

  it("in order finishes what it has, and takes no more", async () => {
    const { jobs } = await start();
    const worker = await startWorker((_job, stop) => workFor(700, stop), 2);
    const result = jobs.run(resumeOf(), never());
    await expect.poll(() => worker.begun).toHaveLength(1);
    const closed = worker.close();
    const next = jobs.run(resumeOf(), never());
    expect(await result).toEqual(OK);
    await closed;
    expect(worker.begun).toHaveLength(1);
    const other = await startWorker(async () => OK);
    expect(await next).toEqual(OK);
    expect(other.begun).toHaveLength(1);
  });
});

describe("a store that goes away", () => {
  it("and comes back empty while a job waits: the API knows within seconds", async () => {
    const { jobs, server } = await start();
    const result = errorOf(jobs.run(resumeOf(), never()));
    await expect.poll(waiting).toBe(1);
    await server.kill();
    await server.start();
    const began = performance.now();
    expect(await result).toMatchObject(LOST);
    expect(performance.now() - began).toBeLessThan(KNOWN_MS);
  });

  it("and comes back empty while a job is in work: its answer comes all the same", async () => {
    const { jobs, server } = await start();
    const worker = await startWorker((_job, stop) => workFor(4000, stop));
    const result = jobs.run(resumeOf(), never());
    await expect.poll(() => worker.begun).toHaveLength(1);
    await server.kill();
    await server.start();
    expect(await result).toEqual(OK);
    expect(worker.begun).toHaveLength(1);
  });

  it("and comes back as it was before a job was taken: it is not begun again", async () => {
    const { jobs, redis } = await start();
    const worker = await startWorker((_job, stop) => workFor(2500, stop), 2);
    const job = resumeOf();
    const result = jobs.run(job, never());
    await expect.poll(() => worker.begun).toHaveLength(1);
    await redis.hset(liveJobKey(job.job_id), { state: "waiting", job: JSON.stringify(job) });
    await redis.rpush(liveWaitingKey("python"), job.job_id);
    await redis.publish(JOB_HINTS_CHANNEL, jobHint("live", "python"));
    expect(await result).toEqual(OK);
    expect(worker.begun).toHaveLength(1);
  });

  it("before a job is sent: store_unavailable, and the next one is done", async () => {
    const { jobs, server } = await start();
    await server.kill();
    expect(await errorOf(jobs.run(resumeOf(), never()))).toMatchObject({ code: "store_unavailable" });
    await server.start();
    await startWorker(async () => OK);
    expect(await jobs.run(resumeOf(), never())).toEqual(OK);
  });
});
