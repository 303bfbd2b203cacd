/** Paused programs that nobody can resume are removed from their runners, where they would take a place until they expire. */
import type { ServerResponse } from "node:http";
import { callIdOf, historyKey, type Job, type JobResult, newId, type ToolCallRequired } from "@svc/contracts";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import {
  ENDED,
  executionOf,
  labelled,
  PAUSED,
  type Programs,
  pauseOf,
  startPrograms,
} from "../../support/programs.ts";

const QUEUE_WAIT_MS = 1000;
const MAX_STATE_BYTES = 1_000_000;
const callIds = [1, 2, 3, 4, 5, 6, 7, 8].map(callIdOf);
/** As many as the worker takes at once. */
const SLOTS = 8;
let made: Programs;
let round: (job: Job) => Promise<JobResult> | JobResult = () => PAUSED;
beforeAll(async () => {
  made = await startPrograms((job) => round(job), 1, {
    JOB_QUEUE_WAIT_MS: String(QUEUE_WAIT_MS),
    PTC_MAX_STATE_BYTES: String(MAX_STATE_BYTES),
  });
});
afterAll(() => made.stop());

async function paused(init?: RequestInit): Promise<ToolCallRequired> {
  round = () => PAUSED;
  return (await (await made.start(init)).json()) as ToolCallRequired;
}

/** Ends a resume with another pause, before which something has happened to its program. */
async function pausedAgain(meanwhile: (id: string) => Promise<unknown>) {
  const program = await paused();
  const id = executionOf(program);
  round = async () => {
    await meanwhile(id);
    return { ok: true, answer: { ...pauseOf("call_002") } };
  };
  const answer = await made.resume(program);
  return { id, error: ((await answer.json()) as { error: string }).error };
}

it("that of a start whose calls cannot be read", async () => {
  const { pending_calls: _, ...large } = pauseOf("call_001");
  let id = "";
  round = ({ execution_id }) => {
    id = execution_id;
    return { ok: true, answer: large };
  };
  expect((await made.start()).status).toBe(503);
  await expect.poll(() => made.discarded).toContain(id);
});

it.each<[what: string, listing: (answer: ServerResponse) => void]>([
  [
    "bytes than its state may have, without their end being waited for",
    (answer) => {
      const more = () => {
        while (answer.write(" ".repeat(MAX_STATE_BYTES)));
      };
      answer.on("drain", more);
      more();
    },
  ],
  [
    "values than JSON may have, though few bytes",
    (answer) => {
      const zeros = "0,".repeat(30_000);
      const calls = callIds.map(
        (id) => `{"call_id":"${id}","tool_name":"t","tool_input":{"x":[${zeros}0]},"timestamp":1}`,
      );
      answer.end(`{"status":"active","pending_calls":[${calls}]}`);
    },
  ],
])("one whose calls have more %s", async (_, listing) => {
  made.inner.listing = listing;
  onTestFinished(() => {
    made.inner.listing = undefined;
  });
  const { pending_calls: __, ...large } = { ...pauseOf("call_001"), pending_call_ids: callIds };
  let id = "";
  round = ({ execution_id }) => {
    id = execution_id;
    return { ok: true, answer: large };
  };
  const answer = await made.start();
  expect([answer.status, await answer.json()]).toEqual([
    422,
    expect.objectContaining({ error: "state_too_large" }),
  ]);
  await expect.poll(() => made.discarded).toContain(id);
});

it("one whose record was lost during its round", async () => {
  const { id, error } = await pausedAgain((lost) =>
    made.redis.del(`svc:ptc:${lost}`, `svc:ptc:${lost}:program`, historyKey(lost)),
  );
  expect(error).toBe("execution_expired");
  await expect.poll(() => made.discarded).toContain(id);
});

it("one that another attempt has paused, and can be resumed, stays", async () => {
  const { id, error } = await pausedAgain(async (other) => {
    const record = JSON.parse(String(await made.redis.get(`svc:ptc:${other}`))) as object;
    await made.redis.set(`svc:ptc:${other}`, JSON.stringify({ ...record, change: newId() }));
  });
  expect(error).toBe("store_unavailable");
  // A discard would go before this start.
  await paused();
  expect(made.discarded).not.toContain(id);
});

it("one whose earlier record came back with the store stays: the same resume completes it", async () => {
  const program = await paused();
  const id = executionOf(program);
  const record = String(await made.redis.get(`svc:ptc:${id}`));
  const calls = await made.redis.lrange(historyKey(id), 0, -1);
  round = async () => {
    await made.redis.set(`svc:ptc:${id}`, record);
    await made.redis.del(historyKey(id));
    await made.redis.rpush(historyKey(id), ...calls);
    return ENDED;
  };
  const lost = await made.resume(program);
  expect([lost.status, await lost.json()]).toEqual([
    503,
    expect.objectContaining({ error: "store_unavailable" }),
  ]);
  round = () => ENDED;
  expect(await (await made.resume(program)).json()).toMatchObject({ status: "completed" });
  expect(made.discarded).not.toContain(id);
});

it("a cancelled one as soon as a worker has time, however long that takes", async () => {
  const label = newId();
  const id = executionOf(await paused(labelled(label)));
  const { promise, resolve: end } = Promise.withResolvers<JobResult>();
  round = () => promise;
  const before = made.worker.started.length;
  const busy = Array.from({ length: SLOTS }, () => made.start());
  await expect.poll(() => made.worker.started.length).toBe(before + SLOTS);
  expect(await made.cancel(label)).toBe(1);
  // Longer than a job waits in the queue.
  await new Promise((later) => setTimeout(later, 3 * QUEUE_WAIT_MS));
  expect(made.discarded).not.toContain(id);
  end(ENDED);
  await expect.poll(() => made.discarded).toContain(id);
  for (const answer of await Promise.all(busy)) expect(answer.status).toBe(200);
});

it("without a trace of its removal in the queue: another pause of the program may have to be removed, too", async () => {
  const label = newId();
  const id = executionOf(await paused(labelled(label)));
  expect(await made.cancel(label)).toBe(1);
  await expect.poll(() => made.discarded).toContain(id);
  await expect.poll(() => made.redis.keys(`bull:*${id}.*`)).toEqual([]);
});
