/** Resumes that are repeated while their round is made: few wait at once, each for as long as its client, and with little memory. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type JobResult, newId, type ToolCallRequired } from "@svc/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  ENDED,
  executionOf,
  labelled,
  PAUSED,
  type Programs,
  RESULTS,
  startPrograms,
} from "../../support/programs.ts";

/** Four repeats fit into what a caller's may hold, twice the history. */
const MAX_HISTORY = 1_000_000;
const LARGE = [{ call_id: "call_001", result: "x".repeat(400_000) }];
const MOST_WAITING = 4;
let made: Programs;
let end: (result: JobResult) => void;
let round: Promise<JobResult>;
beforeAll(async () => {
  const env = { PTC_MAX_HISTORY_BYTES: String(MAX_HISTORY) };
  made = await startPrograms((job) => (job.resume === undefined ? PAUSED : round), 1, env);
});
afterAll(() => made.stop());

/** A paused program whose next round lasts until `end`, and a resume that makes it. */
async function resuming(results = RESULTS as object[]) {
  ({ promise: round, resolve: end } = Promise.withResolvers<JobResult>());
  const paused = (await (await made.start()).json()) as ToolCallRequired;
  const before = made.worker.started.length;
  const first = made.resume(paused, {}, results);
  await expect.poll(() => made.worker.started.length).toBe(before + 1);
  return { paused, first, waiter: `svc:ptc:${executionOf(paused)}:answer:1:waiter` };
}

/** How many resumes met one in flight. */
async function met(): Promise<number> {
  const text = await (made.replicas[0] as Programs["replicas"][0]).registry.metrics();
  return Number(/^svc_ptc_replay_lock_contention_total (\d+)$/m.exec(text)?.[1]);
}

async function statusOf(body: Buffer): Promise<number | undefined> {
  const headers = { "content-type": "application/json" };
  const sent = request(`${made.urls[0]}/exec/programmatic`, { method: "POST", headers }).end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

test("a repeat whose client leaves waits no longer; the round goes on, and its answer is kept", async () => {
  const { paused, first, waiter } = await resuming();
  const client = new AbortController();
  const repeated = made.resume(paused, { signal: client.signal });
  await expect.poll(() => made.redis.exists(waiter)).toBe(1);
  client.abort();
  await expect(repeated).rejects.toThrow();
  await expect.poll(() => made.redis.exists(waiter)).toBe(0);
  expect(made.worker.cancelled).toEqual([]);
  end(ENDED);
  const answer = await (await first).json();
  expect(answer).toMatchObject({ status: "completed" });
  expect(await (await made.resume(paused)).json()).toEqual(answer);
});

test("a client that leaves a resume ends nothing but its own wait", async () => {
  ({ promise: round, resolve: end } = Promise.withResolvers<JobResult>());
  const paused = (await (await made.start()).json()) as ToolCallRequired;
  const before = made.worker.started.length;
  const client = new AbortController();
  const first = made.resume(paused, { signal: client.signal });
  await expect.poll(() => made.worker.started.length).toBe(before + 1);
  client.abort();
  await expect(first).rejects.toThrow();
  const repeated = made.resume(paused);
  end(ENDED);
  expect(await (await repeated).json()).toMatchObject({ status: "completed" });
  expect(made.worker.cancelled).toEqual([]);
  expect(made.worker.started.length).toBe(before + 1);
});

test("repeats hold so much of a caller's results, of all programs; one more is told to come again, and may when another one has left", async () => {
  const other = (await (await made.start()).json()) as ToolCallRequired;
  const { paused, first } = await resuming(LARGE);
  const repeat = (init?: RequestInit) => made.resume(paused, init, LARGE);
  const before = await met();
  const client = new AbortController();
  const leaving = repeat({ signal: client.signal });
  const waiting = Array.from({ length: MOST_WAITING - 1 }, () => repeat());
  await expect.poll(met).toBe(before + MOST_WAITING);
  const started = made.worker.started.length;
  const firstOfOther = made.resume(other, {}, LARGE);
  await expect.poll(() => made.worker.started.length).toBe(started + 1);
  for (const refused of [await repeat(), await made.resume(other, {}, LARGE)]) {
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
    expect(await refused.json()).toMatchObject({
      error: "queue_saturated",
      message: expect.stringContaining("safe to repeat"),
    });
  }
  client.abort();
  await expect(leaving).rejects.toThrow();
  // The server hears of it a little later.
  for (let hasPlace = false; !hasPlace; ) {
    const last = repeat();
    hasPlace = (await Promise.race([last, sleep(500)])) === undefined;
    if (hasPlace) waiting.push(last);
  }
  end(ENDED);
  const answers = await Promise.all([first, firstOfOther, ...waiting]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
});

test("a repeat that waits holds nothing of its body but the token and the results", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heldBytes = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const { paused, first } = await resuming();
  const { continuation_token } = paused;
  const body = { continuation_token, tool_results: RESULTS, unknown: "x".repeat(16 << 20) };
  // In a buffer: what this client holds is not in the heap.
  const bytes = Buffer.from(JSON.stringify(body));
  const before = { met: await met(), bytes: heldBytes() };
  const waiting: Promise<number | undefined>[] = [];
  for (let at = 1; at <= 8; at++) {
    waiting.push(statusOf(bytes));
    await expect.poll(met).toBe(before.met + at);
  }
  expect(heldBytes() - before.bytes).toBeLessThan(48 << 20);
  end(ENDED);
  expect((await first).status).toBe(200);
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 200));
});

test("a repeat that waits is refused as the first request is when their program is cancelled", async () => {
  const { paused, first, waiter } = await resuming();
  const label = newId();
  const repeated = made.resume(paused, labelled(label));
  await expect.poll(() => made.redis.exists(waiter)).toBe(1);
  expect(await made.cancel(label)).toBe(1);
  for (const refused of [await first, await repeated]) {
    expect([refused.status, await refused.json()]).toEqual([
      409,
      expect.objectContaining({ error: "execution_cancelled" }),
    ]);
  }
  end(ENDED);
});
