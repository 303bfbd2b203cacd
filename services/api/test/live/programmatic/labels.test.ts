/** Programs are cancelled by the labels of their requests for as long as there is something to cancel. Two replicas. */
import { historyKey, type Job, type JobResult, newId, type ToolCallRequired } from "@svc/contracts";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  ENDED,
  executionOf,
  labelled,
  PAUSED,
  type Programs,
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
  const labels = await made.redis.keys("svc:ptc:label:*");
  if (labels.length > 0) await made.redis.del(...labels);
});

const pauseOf = async (answer: Promise<Response>): Promise<ToolCallRequired> => {
  const body = (await (await answer).json()) as ToolCallRequired;
  expect(body.status).toBe("tool_call_required");
  return body;
};
const labels = async () => (await made.redis.keys("svc:ptc:label:*")).length;

describe("a program that paused again", () => {
  it.each(["that of all its requests", "that of its start", "that of its last resume"])(
    "is cancelled by its label: %s",
    async (which) => {
      const [label, other] = [newId(), newId()];
      const ofResumes = which === "that of all its requests" ? label : other;
      rounds = [PAUSED, PAUSED, PAUSED];
      let paused = await pauseOf(made.start(labelled(label)));
      for (let at = 0; at < 2; at++) paused = await pauseOf(made.resume(paused, labelled(ofResumes)));
      const before = made.discarded.length;
      expect(await made.cancel(which === "that of its last resume" ? other : label, 1)).toBe(1);
      await expect.poll(() => made.discarded.slice(before)).toEqual([executionOf(paused)]);
      expect((await made.resume(paused)).status).toBe(400);
      expect(await made.cancel(label, 1)).toBe(0);
    },
  );

  it("keeps the label of a start longer than that of a resume, also where both are the same", async () => {
    const [label, other] = [newId(), newId()];
    rounds = [PAUSED, PAUSED, PAUSED];
    const first = await pauseOf(made.start(labelled(label)));
    const second = await pauseOf(made.resume(first, labelled(label)));
    await pauseOf(made.resume(second, labelled(other)));
    const keys = await made.redis.keys("svc:ptc:label:*");
    const [shorter = 0, longer = 0] = (await Promise.all(keys.map((key) => made.redis.ttl(key)))).sort(
      (a, b) => a - b,
    );
    expect(longer).toBeGreaterThan(86_400);
    // A round and a pause of 600 s.
    expect(shorter).toBeGreaterThan(600);
    expect(shorter).toBeLessThan(7200);
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
