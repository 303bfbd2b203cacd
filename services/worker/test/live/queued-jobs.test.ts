/** Queued jobs between an API and workers, over a real Redis: each is done once, in order, whatever is lost on the way. */
import { setTimeout as sleep } from "node:timers/promises";
import { JOB_HINTS_CHANNEL, jobHint, QUEUE_NAMES } from "@svc/contracts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { jobOf, never, OK, startJobs, type TestJobs, workFor } from "../../../api/test/support/consumer.ts";
import { startWorker as startOne, type TestWorker } from "../support/consumers.ts";

const LONG_MS = 30_000;
/**
 * A lock lasts ten seconds, and is looked at every five. A look that comes a moment before the last one is five seconds old is
 * left out, so that there may be ten between two; then the job is done.
 */
const TAKEN_UP_MS = 10_000 + 2 * 5000 + 2000;

let made: TestJobs;
let workers: TestWorker[];
const start = async (env?: Record<string, string>) => {
  made = await startJobs(env);
  return made;
};
beforeEach(() => {
  workers = [];
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close()));
  await made.stop();
});
const startWorker = async (work: Parameters<typeof startOne>[1], concurrency?: number) => {
  const worker = await startOne(made.server.url, work, concurrency);
  workers.push(worker);
  return worker;
};

describe("a queued job", () => {
  it("comes before its hint: workers that hear of it find it", async () => {
    const { jobs, redis } = await start();
    const commands: string[] = [];
    const connection = redis.duplicate();
    const monitor = await connection.monitor();
    monitor.on("monitor", (_time: string, words: string[], source: string) => {
      // What scripts do is told of as well.
      if (source === "lua") return;
      if (words[0] === "publish" && words[1] === JOB_HINTS_CHANNEL) commands.push("hint");
      if (words[0]?.startsWith("eval") && words.some((word) => word.includes(QUEUE_NAMES.python)))
        commands.push("job");
    });
    const abort = new AbortController();
    const running = Array.from({ length: 20 }, () => jobs.run(jobOf(), abort.signal).catch(() => undefined));
    await expect.poll(() => commands.length).toBeGreaterThanOrEqual(40);
    const [adds, hints] = [commands.lastIndexOf("job"), commands.indexOf("hint")];
    expect(commands.slice(0, 40).filter((command) => command === "hint")).toHaveLength(20);
    expect(hints).toBeGreaterThan(0);
    expect(adds).toBeLessThan(commands.lastIndexOf("hint"));
    for (let at = 0, open = 0; at < 40; at++) {
      open += commands[at] === "job" ? 1 : -1;
      expect(open).toBeGreaterThanOrEqual(0);
    }
    abort.abort();
    await Promise.all(running);
    for (const open of [monitor, connection]) open.disconnect();
  });

  it("begins at once, and those that wait keep their order", async () => {
    const { jobs } = await start();
    const worker = await startWorker((_job, stop) => workFor(20, stop));
    const began = performance.now();
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
    expect(performance.now() - began).toBeLessThan(1000);
    const sent = Array.from({ length: 10 }, () => jobOf());
    const results = [];
    for (const job of sent) {
      results.push(jobs.run(job, never()));
      await sleep(2);
    }
    expect(await Promise.all(results)).toEqual(sent.map(() => OK));
    expect(worker.begun.slice(1)).toEqual(sent.map((job) => job.execution_id));
    expect(worker.most()).toBe(1);
  });

  it("leaves nothing that runs in the queue when it has ended", async () => {
    const { jobs, queue } = await start();
    await startWorker(async () => OK, 4);
    await Promise.all(Array.from({ length: 12 }, () => jobs.run(jobOf(), never())));
    await expect
      .poll(() => queue.getJobCounts("waiting", "active", "failed", "delayed"))
      .toEqual({ waiting: 0, active: 0, failed: 0, delayed: 0 });
  });

  it("whose hint was lost begins a poll later", async () => {
    const { jobs, queue } = await start();
    const { begun, deafen, hear } = await startWorker(async () => OK);
    await deafen();
    const result = jobs.run(jobOf(), never());
    await expect.poll(() => queue.getWaitingCount()).toBe(1);
    await hear();
    expect(await result).toEqual(OK);
    expect(begun).toHaveLength(1);
  });

  it("is found by a worker that hears nothing at all", async () => {
    const { jobs } = await start();
    const { deafen } = await startWorker(async () => OK);
    await deafen();
    const began = performance.now();
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
    expect(performance.now() - began).toBeLessThan(8000);
  });

  it("that waits while no worker lives is done by the next one", async () => {
    const { jobs, queue } = await start();
    const results = [jobs.run(jobOf(), never()), jobs.run(jobOf(), never())];
    await expect.poll(() => queue.getWaitingCount()).toBe(2);
    await startWorker(async () => OK);
    expect(await Promise.all(results)).toEqual([OK, OK]);
  });

  it("is held for longer than a lock lasts", async () => {
    const { jobs } = await start();
    const { begun } = await startWorker((_job, stop) => workFor(16_000, stop));
    const result = jobs.run(jobOf({ run_timeout: 20_000 }), never());
    await expect.poll(() => begun).toHaveLength(1);
    const other = await startWorker(async () => OK);
    expect(await result).toEqual(OK);
    expect(other.begun).toEqual([]);
  });

  it("whose worker died is taken up once by another", async () => {
    const { jobs } = await start();
    const dying = await startWorker(() => workFor(LONG_MS, never()));
    const result = jobs.run(jobOf({ run_timeout: 60_000 }), never());
    await expect.poll(() => dying.begun).toHaveLength(1);
    dying.die();
    const other = await startWorker(async () => OK);
    const began = performance.now();
    expect(await result).toEqual(OK);
    expect(performance.now() - began).toBeLessThan(TAKEN_UP_MS);
    expect(other.begun).toEqual(dying.begun);
  });

  it("whose worker only seemed dead is done twice: the first answer counts, and the late end harms nobody", async () => {
    const { jobs, queue, redis } = await start();
    const slow = await startWorker((_job, stop) => workFor(16_000, stop));
    const job = jobOf({ run_timeout: 60_000 });
    const result = jobs.run(job, never());
    await expect.poll(() => slow.begun).toHaveLength(1);
    const other = await startWorker(async () => ({ ok: true, answer: { by: "other" } }));
    // As if it had been silent for longer than its lock lasts.
    expect(await redis.del(`${queue.toKey(job.execution_id)}:lock`)).toBe(1);
    expect(await result).toEqual({ ok: true, answer: { by: "other" } });
    expect([slow.begun, other.begun]).toEqual([[job.execution_id], [job.execution_id]]);
    await slow.close();
    expect(await queue.getJobCounts("waiting", "active", "failed", "delayed")).toEqual({
      waiting: 0,
      active: 0,
      failed: 0,
      delayed: 0,
    });
    expect(await jobs.run(jobOf(), never())).toMatchObject({ ok: true });
  });

  it("that cannot be read fails, and the next one is done", async () => {
    const { jobs, queue, redis } = await start();
    await startWorker(async () => OK);
    await queue.add("exec", { v: 1, nothing: true }, { jobId: "broken", attempts: 1 });
    await redis.publish(JOB_HINTS_CHANNEL, jobHint("queue", "python"));
    await expect.poll(() => queue.getJobState("broken")).toBe("failed");
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
  });

  it("may be taken by any consumer of the queue", async () => {
    const { jobs, consume } = await start();
    const { started } = await consume({ work: async () => OK });
    expect(await jobs.run(jobOf(), never())).toEqual(OK);
    expect(started).toHaveLength(1);
  });
});

describe("a store that goes away", () => {
  it("while jobs are in work: their answers come, and further ones are done", async () => {
    const { jobs, server } = await start();
    const worker = await startWorker((_job, stop) => workFor(2500, stop), 2);
    const result = jobs.run(jobOf({ run_timeout: 10_000 }), never());
    await expect.poll(() => worker.begun).toHaveLength(1);
    await server.kill();
    await server.start();
    expect(await result).toEqual(OK);
    expect(await jobs.run(jobOf({ run_timeout: 10_000 }), never())).toEqual(OK);
    expect(worker.begun).toHaveLength(2);
  });
});
