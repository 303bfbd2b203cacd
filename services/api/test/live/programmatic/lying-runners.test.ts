/** Pauses that only a runner says that somebody has taken over: they are failures of the run, and no call of theirs reaches the caller. */
import { callIdOf, type Job, type JobResult, type ToolCallRequired } from "@svc/contracts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ENDED, executionOf, PAUSED, type Programs, pauseOf, startPrograms } from "../../support/programs.ts";

const MAX_CALLS = 3;
let made: Programs;
let round: (job: Job) => JobResult = () => PAUSED;
beforeAll(async () => {
  made = await startPrograms((job) => round(job), 1, { PTC_MAX_CALLS: String(MAX_CALLS) });
});
afterAll(() => made.stop());

/** A pause at the calls of these numbers. */
function pausedAtCalls(...numbers: number[]): JobResult {
  const ids = numbers.map(callIdOf);
  const pending_calls = ids.map((call_id) => ({ call_id, tool_name: "t", tool_input: {} }));
  return { ok: true, answer: { ...pauseOf("call_001"), pending_call_ids: ids, pending_calls } };
}

async function startPaused(): Promise<ToolCallRequired> {
  round = () => PAUSED;
  return (await (await made.start()).json()) as ToolCallRequired;
}

async function expectBroken(answer: Response): Promise<void> {
  expect([answer.status, await answer.json()]).toEqual([
    502,
    expect.objectContaining({ error: "sandbox_execution_failed" }),
  ]);
}

it("a start with more calls than a program may make", async () => {
  const ids = new Set<string>();
  round = ({ execution_id }) => {
    ids.add(execution_id);
    return pausedAtCalls(1, 2, 3, 4);
  };
  await expectBroken(await made.start());
  await expect.poll(() => made.discarded).toEqual(expect.arrayContaining([...ids]));
});

it.each([
  ["a call that has its result", [1]],
  ["a call that has its result beside a new one", [1, 2]],
  ["the same new call twice", [2, 2]],
  ["more calls than are left", [2, 3, 4]],
])("a resume with %s, whose token stays good", async (_, numbers) => {
  const paused = await startPaused();
  round = () => pausedAtCalls(...numbers);
  await expectBroken(await made.resume(paused));
  round = () => pausedAtCalls(2, 3);
  const next = (await (await made.resume(paused)).json()) as ToolCallRequired;
  expect(next.tool_calls.map(({ id }) => id)).toEqual(["call_002", "call_003"]);
});

it("a program that made its calls before their limit was lowered may make no further ones, and ends", async () => {
  const paused = await startPaused();
  const key = `svc:ptc:${executionOf(paused)}`;
  const { runner_url: _, ...record } = JSON.parse(String(await made.redis.get(key))) as Record<
    string,
    unknown
  >;
  await made.redis.set(key, JSON.stringify({ ...record, calls: MAX_CALLS + 2 }));
  let left: number | undefined;
  round = ({ ptc }) => {
    left = ptc?.max_calls;
    return ENDED;
  };
  const answer = await made.resume(paused);
  expect(await answer.json()).toMatchObject({ status: "completed" });
  expect(left).toBe(0);
});
