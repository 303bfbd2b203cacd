/** What is stored of a caller's programs and jobs is bounded in bytes, for all replicas together, and counts no longer once it is gone. */
import { callIdOf, type JobResult, newId, type ToolCallRequired } from "@svc/contracts";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import {
  ENDED,
  endOf,
  executionOf,
  labelled,
  PAUSED,
  type Programs,
  pausedAt,
  pauseOf,
  type Round,
  startPrograms,
} from "../../support/programs.ts";

const MOST = 300_000;
const OUTPUT = "x".repeat(60_000);
const KEYS = "svc:stored:*";
let made: Programs;
let round: Round = () => PAUSED;
beforeAll(async () => {
  made = await startPrograms((job, cancelled) => round(job, cancelled), 2, {
    SVC_MAX_STORED_BYTES: String(MOST),
  });
});
afterAll(() => made.stop());
beforeEach(async () => {
  round = () => PAUSED;
  const keys = [...(await made.redis.keys("svc:ptc*")), ...(await made.redis.keys(KEYS))];
  if (keys.length > 0) await made.redis.del(...keys);
});

/** On the other replica each time. */
let at = 0;
const start = (bytes: number) =>
  fetch(`${made.urls[at++ % 2]}/exec/programmatic`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code: `#${newId()}`.padEnd(bytes, "#"), tools: [{ name: "t" }] }),
  });
const pausedOf = async (answer: Promise<Response>) => (await (await answer).json()) as ToolCallRequired;

/** On the other replica each time. */
const startJob = (code = "print(1)") =>
  fetch(`${made.urls[at++ % 2]}/exec`, {
    method: "POST",
    headers: { "content-type": "application/json", prefer: "respond-async" },
    body: JSON.stringify({ lang: "py", code }),
  });

/** Its id. */
async function jobThatEnded(): Promise<string> {
  const created = await startJob();
  expect(created.status).toBe(202);
  const { job_id } = (await created.json()) as { job_id: string };
  const url = `${made.urls[0]}/jobs/${job_id}?wait_ms=10000`;
  expect(await (await fetch(url)).json()).toMatchObject({ status: "completed" });
  return job_id;
}

/** What both replicas have counted. */
async function refusals(): Promise<number> {
  const counts = await Promise.all(
    made.urls.map(async (url) => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(/^svc_rate_limited_total\{scope="stored_bytes"\} (\d+)$/m.exec(text)?.[1]);
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Programs that are paused, until a start is refused. */
async function fill(bytes: number): Promise<ToolCallRequired[]> {
  const all: ToolCallRequired[] = [];
  for (;;) {
    const answer = await start(bytes);
    if (answer.status === 429) return all;
    expect(answer.status).toBe(200);
    all.push((await answer.json()) as ToolCallRequired);
  }
}

/** In bytes. */
async function counted(): Promise<number> {
  const [key] = await made.redis.keys(`${KEYS}:bytes`);
  return key === undefined ? 0 : Number(await made.redis.hget(key, "total"));
}

it("refuses a start beyond it with 429, and takes it when a program has ended", async () => {
  const [first, ...others] = await fill(100_000);
  expect(others.length + 1).toBe(3);
  const refused = await start(10);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
  expect(await refused.json()).toMatchObject({ error: "rate_limited" });
  round = () => ENDED;
  expect((await made.resume(first as ToolCallRequired)).status).toBe(200);
  expect((await start(10)).status).toBe(200);
});

it("refuses results beyond twice as much; their token stays good", async () => {
  const [first, second] = (await fill(100_000)) as [ToolCallRequired, ToolCallRequired];
  const large = [{ call_id: "call_001", result: "x".repeat(120_000) }];
  round = () => pausedAt(2);
  const next = await pausedOf(made.resume(first, {}, large));
  const refused = await made.resume(second, {}, large);
  expect([refused.status, await refused.json()]).toEqual([
    429,
    expect.objectContaining({ error: "rate_limited" }),
  ]);
  round = () => ENDED;
  for (const answer of [await made.resume(next), await made.resume(second, {}, large)])
    expect(await answer.json()).toMatchObject({ status: "completed" });
});

it("counts the answers of a program, also when it is over", async () => {
  let calls = 0;
  round = () => ({ ok: true, answer: { ...pauseOf(callIdOf(++calls)), stdout: OUTPUT } });
  let paused = await pausedOf(start(10));
  for (let rounds = 1; rounds <= 3; rounds++) {
    paused = await pausedOf(made.resume(paused));
    expect(await counted()).toBeGreaterThan(rounds * OUTPUT.length);
  }
  round = () => ENDED;
  await made.resume(paused);
  expect(await counted()).toBeGreaterThan(3 * OUTPUT.length);
  const stored = await made.redis.keys("svc:ptc:*:answer:*");
  expect(stored).toHaveLength(4);
  const lives = await Promise.all(
    [...stored, ...(await made.redis.keys(KEYS))].map((key) => made.redis.pttl(key)),
  );
  // The count is there for as long as what it counts.
  expect(Math.min(...lives.slice(-2))).toBeGreaterThanOrEqual(Math.max(...lives.slice(0, -2)) - 1000);
});

/** Bytes of what Redis has of all programs, and of their calls alone. */
async function held(): Promise<{ all: number; calls: number }> {
  const keys = await made.redis.keys("svc:ptc:*");
  const lists = keys.filter((key) => key.endsWith(":history"));
  const calls = (await Promise.all(lists.map((key) => made.redis.lrange(key, 0, -1)))).flat();
  const texts = await Promise.all(
    keys.filter((key) => !lists.includes(key)).map((key) => made.redis.strlen(key)),
  );
  const callBytes = calls.reduce((sum, call) => sum + Buffer.byteLength(call), 0);
  return { all: texts.reduce((sum, bytes) => sum + bytes, callBytes), calls: callBytes };
}

it("counts no less than Redis has of a program, its calls and its results, which the tool call server has, too", async () => {
  const called = (id: string): JobResult => {
    const pending_calls = [{ call_id: id, tool_name: "t", tool_input: { x: "é".repeat(5000) } }];
    return { ok: true, answer: { ...pauseOf(id), pending_calls } };
  };
  const holds = async () => {
    const { all, calls } = await held();
    expect(calls).toBeGreaterThan(10_000);
    expect(await counted()).toBeGreaterThanOrEqual(all + calls);
  };
  round = () => called("call_001");
  const first = await pausedOf(start(10));
  await holds();
  round = () => called("call_002");
  await pausedOf(made.resume(first, {}, [{ call_id: "call_001", result: '"\\'.repeat(10_000) }]));
  await holds();
});

it("counts a program no longer that was cancelled, or has expired", async () => {
  const label = newId();
  await made.start(labelled(label));
  expect(await counted()).toBeGreaterThan(0);
  expect(await made.cancel(label)).toBe(1);
  expect([await counted(), await made.redis.keys(KEYS)]).toEqual([0, []]);
  const id = executionOf(await pausedOf(start(100_000)));
  const [key = ""] = (await made.redis.keys(KEYS)).filter((each) => !each.endsWith(":bytes"));
  await made.redis.zadd(key, Date.now() - 1, id);
  await start(10);
  expect(await counted()).toBeLessThan(10_000);
});

it("keeps neither the job of a first round nor its result", async () => {
  const job = `${executionOf(await pausedOf(start(100_000)))}.1.1`;
  await expect.poll(() => made.redis.exists(`bull:python-queue:${job}`)).toBe(0);
  await expect.poll(() => made.redis.get(`svc:result:${job}`)).toBe("");
});

it("counts jobs that have ended with programs: beyond it neither starts, until something is removed", async () => {
  round = () => ({ ok: true, answer: { ...endOf(0), wall_time: 1, stdout: OUTPUT } });
  const before = await refusals();
  const first = await jobThatEnded();
  for (let jobs = 1; jobs < MOST / OUTPUT.length; jobs++) await jobThatEnded();
  for (const refused of [await startJob(), await start(10)]) {
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
    expect(await refused.json()).toMatchObject({
      error: "rate_limited",
      message: expect.stringMatching(/Delete jobs/),
    });
  }
  expect((await refusals()) - before).toBe(2);
  expect((await fetch(`${made.urls[0]}/jobs/${first}`, { method: "DELETE" })).status).toBe(204);
  await jobThatEnded();
});

it("counts jobs that wait or run with what they are to run, until they have ended", async () => {
  const end = Promise.withResolvers<JobResult>();
  round = () => end.promise;
  const ids: string[] = [];
  let last = await startJob(`#${"x".repeat(100_000)}`);
  for (; last.status === 202; last = await startJob(`#${"x".repeat(100_000)}`))
    ids.push(((await last.json()) as { job_id: string }).job_id);
  expect([ids.length, last.status, last.headers.get("retry-after")]).toEqual([2, 429, "5"]);
  expect(await last.json()).toMatchObject({ error: "rate_limited", message: expect.stringMatching(/bytes/) });
  expect(await counted()).toBeGreaterThan(200_000);
  end.resolve({ ok: true, answer: { ...endOf(0), wall_time: 1 } });
  for (const id of ids)
    expect(await (await fetch(`${made.urls[0]}/jobs/${id}?wait_ms=10000`)).json()).toMatchObject({
      status: "completed",
    });
  expect(await counted()).toBeLessThan(10_000);
  await jobThatEnded();
});
