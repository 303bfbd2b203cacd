/** Programs are cancelled by the labels of their requests for as long as there is something to cancel. Two replicas. */
import { historyKey, type Job, type JobResult, newId, type ToolCallRequired } from "@svc/contracts";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  ENDED,
  executionOf,
  labelled,
  PAUSED,
  type Programs,
  pausedAt,
  startPrograms,
} from "../../support/programs.ts";

let made: Programs;
/** How the rounds of a program end, one after the other. */
let rounds: (JobResult | ((job: Job, cancelled: AbortSignal) => Promise<JobResult>))[] = [];
beforeAll(async () => {
  made = await startPrograms((job, cancelled) => {
    const next = rounds.shift() ?? ENDED;
    return typeof next === "function" ? next(job, cancelled) : next;
  }, 2);
});
afterAll(() => made.stop());
beforeEach(async () => {
  const labels = await made.redis.keys("svc:ptc:labelled:*");
  if (labels.length > 0) await made.redis.del(...labels);
});

const pauseOf = async (answer: Promise<Response>): Promise<ToolCallRequired> => {
  const body = (await (await answer).json()) as ToolCallRequired;
  expect(body.status).toBe("tool_call_required");
  return body;
};
const labels = async () => (await made.redis.keys("svc:ptc:labelled:*")).length;

describe("a program that paused again", () => {
  it.each(["that of all its requests", "that of its start", "that of its last resume"])(
    "is cancelled by its label: %s",
    async (which) => {
      const [label, other] = [newId(), newId()];
      const ofResumes = which === "that of all its requests" ? label : other;
      rounds = [PAUSED, pausedAt(2), pausedAt(3)];
      let paused = await pauseOf(made.start(labelled(label)));
      for (let at = 0; at < 2; at++) paused = await pauseOf(made.resume(paused, labelled(ofResumes)));
      const before = made.discarded.length;
      expect(await made.cancel(which === "that of its last resume" ? other : label, 1)).toBe(1);
      await expect.poll(() => made.discarded.slice(before)).toEqual([executionOf(paused)]);
      expect((await made.resume(paused)).status).toBe(400);
      expect(await made.cancel(label, 1)).toBe(0);
    },
  );

  it("is cancelled by a label of which the beginning alone is kept", async () => {
    const label = newId() + "x".repeat(300);
    rounds = [PAUSED];
    await pauseOf(made.start(labelled(label)));
    expect(await made.cancel(label, 1)).toBe(1);
  });

  it("keeps the label of its start from one resume to the next", async () => {
    const label = newId();
    rounds = [PAUSED, pausedAt(2)];
    const first = await pauseOf(made.start(labelled(label)));
    const [key = ""] = await made.redis.keys("svc:ptc:labelled:*");
    const left = async () => Number(await made.redis.zscore(key, executionOf(first))) - Date.now();
    // A round and a pause of 600 s.
    expect(await left()).toBeGreaterThan(600_000);
    expect(await left()).toBeLessThan(7_200_000);
    await made.redis.zadd(key, Date.now() + 1000, executionOf(first));
    await made.redis.pexpire(key, 60_000);
    await pauseOf(made.resume(first, labelled(newId())));
    await expect.poll(left).toBeGreaterThan(600_000);
    expect(await made.redis.pttl(key)).toBeGreaterThan(600_000);
    expect(await made.cancel(label)).toBe(1);
  });
});

describe("a program that is over", () => {
  it("has no label any more when a resume ended it", async () => {
    const [label, other] = [newId(), newId()];
    rounds = [PAUSED, ENDED];
    const paused = await pauseOf(made.start(labelled(label)));
    expect(await labels()).toBe(1);
    expect(await (await made.resume(paused, labelled(other))).json()).toMatchObject({ status: "completed" });
    await expect.poll(labels).toBe(0);
    expect(await Promise.all([label, other].map((each) => made.cancel(each)))).toEqual([0, 0]);
  });

  it("is not counted when its record expired", async () => {
    const label = newId();
    rounds = [PAUSED];
    const id = executionOf(await pauseOf(made.start(labelled(label))));
    await made.redis.del(`svc:ptc:${id}`, `svc:ptc:${id}:program`, historyKey(id));
    expect(await made.cancel(label)).toBe(0);
  });
});

describe("a label of very many programs", () => {
  /** Commands that the store was sent. */
  async function commands(): Promise<number> {
    const counts = (await made.redis.info("commandstats")).matchAll(/calls=(\d+)/g);
    return [...counts].reduce((sum, [, calls]) => sum + Number(calls), 0);
  }

  it("is told of its living ones alone, in few commands", async () => {
    const label = newId();
    rounds = [PAUSED, PAUSED];
    const living = [];
    for (let count = 0; count < 2; count++) living.push(await pauseOf(made.start(labelled(label))));
    const [key = ""] = await made.redis.keys("svc:ptc:labelled:*");
    rounds = [PAUSED, ENDED];
    const over = await pauseOf(made.start());
    expect(await (await made.resume(over)).json()).toMatchObject({ status: "completed" });
    const others = [executionOf(over), ...Array.from({ length: 20_000 }, () => newId())];
    await made.redis.zadd(key, ...others.flatMap((id, at) => [Date.now() + 1000 * at, id]));
    const [before, discarded] = [await commands(), made.discarded.length];
    expect(await made.cancel(label, 1)).toBe(living.length);
    expect((await commands()) - before).toBeLessThan(1000);
    expect(await made.redis.exists(key)).toBe(0);
    await expect.poll(() => made.discarded.slice(discarded).sort()).toEqual(living.map(executionOf).sort());
  });

  it("has none that has outlived what it was added for", async () => {
    const label = newId();
    rounds = [PAUSED, PAUSED];
    const first = await pauseOf(made.start(labelled(label)));
    const [key = ""] = await made.redis.keys("svc:ptc:labelled:*");
    await made.redis.zadd(key, Date.now() - 1, executionOf(first));
    const second = await pauseOf(made.start(labelled(label)));
    expect(await made.redis.zrange(key, "0", "-1")).toEqual([executionOf(second)]);
  });
});

describe("a program in its first round", () => {
  it("is counted once, through another replica, and leaves nothing behind", async () => {
    const label = newId();
    const { promise: began, resolve: begin } = Promise.withResolvers<string>();
    rounds = [
      ({ execution_id }, cancelled) => {
        begin(execution_id);
        return new Promise((end) => cancelled.addEventListener("abort", () => end(PAUSED)));
      },
    ];
    const started = made.start(labelled(label));
    const id = await began;
    expect(await made.cancel(label, 1)).toBe(1);
    const answer = await started;
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([
      409,
      "execution_cancelled",
    ]);
    expect(await made.cancel(label)).toBe(0);
    await expect.poll(() => made.redis.keys(`svc:ptc:${id}*`)).toEqual([]);
    await expect.poll(labels).toBe(0);
  });
});
