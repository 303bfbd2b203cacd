/** Results of a pause are taken in, and the answer is kept, in one step each; over a real Redis, by two replicas. */
import { setTimeout as sleep } from "node:timers/promises";
import { historyKey, newId, ServiceError, type ToolResult } from "@svc/contracts";
import { createRegistry } from "@svc/service-kit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Once, type OwnEntry } from "../../../src/once/once.ts";
import { answerKey } from "../../../src/programmatic/earlier-answers.ts";
import { programmaticMetrics } from "../../../src/programmatic/metrics.ts";
import type { Program, Progress } from "../../../src/programmatic/program.ts";
import { type Known, Programs } from "../../../src/programmatic/programs.ts";
import { type Taken, Taking } from "../../../src/programmatic/taking.ts";
import { never, startJobs, type TestJobs } from "../../support/consumer.ts";

const LIFE_MS = 60_000;
let made: TestJobs;
beforeAll(async () => {
  made = await startJobs();
});
afterAll(() => made.stop());

/** What an API process has. */
function replica() {
  const { redis, config } = made;
  const programs = new Programs(redis);
  const once = new Once(redis, { conflict: "continuation_conflict", storedSeconds: 60 });
  const metrics = programmaticMetrics(createRegistry());
  const taking = (id: string, results: readonly ToolResult[], round = 1) =>
    new Taking({ config, programs, metrics, roundLifeMs: LIFE_MS }, { executionId: id, round }, results);
  /** A resume whose round is `work`. */
  const resume = (
    id: string,
    results: readonly ToolResult[],
    work: (taken: Taken, entry: OwnEntry) => Promise<unknown>,
  ) => {
    const one = taking(id, results);
    const asked = { store: answerKey(id, 1), body: one.digest, left: never(), take: one.begin.bind(one) };
    return once.run(asked, async ({ entry }) => work(await one.finish(), entry));
  };
  return { programs, resume };
}

const result = (value: unknown, call_id = "call_001"): ToolResult => ({ call_id, result: value });

/** A program that paused with two calls, as the replica that let it pause has it; without one nobody knows it. */
async function paused(programs = replica().programs, keepsCopy = true) {
  const id = newId();
  const program = { v: 1, execution_id: id, code: "print(1)" } as Program;
  const to: Progress = {
    status: "paused",
    round: 1,
    waiting: [1, 2].map((number) => ({ call_id: `call_00${number}`, at: number - 1 })),
    runner_url: "http://127.0.0.1:1",
    paused_at: Date.now(),
    run_ms: 1,
    calls: 2,
    history_bytes: 0,
    state_bytes: 100,
  };
  const added = to.waiting.map(({ call_id }) => ({ call_id, name: "add", input_json: "{}" }));
  const known = await programs.advance(id, { from: undefined, to, lifeMs: LIFE_MS, program, added });
  if (known === undefined) throw new Error("the program was there before");
  if (keepsCopy) programs.keepCopy(id, program, known);
  return { id, program, known };
}

const outcomesOf = async (id: string) =>
  (await made.redis.lrange(historyKey(id), 0, -1)).map((text) => JSON.parse(text).outcome);
const entryOf = async (id: string) => JSON.parse((await made.redis.get(answerKey(id, 1))) ?? "null");

describe.each([
  ["known here", true],
  ["known to another replica", false],
])("results for a program that is %s", (_name, isKnown) => {
  it("are stored before the round is made, once for many requests at once", async () => {
    const here = replica();
    const { id, program } = await paused(isKnown ? here.programs : undefined);
    const other = replica();
    let rounds = 0;
    const work = async ({ program: found, known }: Taken) => {
      rounds++;
      expect(found).toEqual(program);
      expect(known.progress.taken).toMatchObject({ mode: "live", tries: 1 });
      expect(await outcomesOf(id)).toEqual([{ result_json: "7" }, undefined]);
      await sleep(100);
      return { a: rounds };
    };
    const asked = [here, other, here, other].map(({ resume }) => resume(id, [result(7)], work));
    const answers = (await Promise.all(asked)).map(({ answer }) => answer);
    expect([rounds, answers]).toEqual([1, [{ a: 1 }, { a: 1 }, { a: 1 }, { a: 1 }]]);
  });

  it("other than those that were stored are refused, also while their round is made", async () => {
    const here = replica();
    const { id } = await paused(isKnown ? here.programs : undefined);
    const conflict = expect.objectContaining({ code: "continuation_conflict" });
    await here.resume(id, [result(1)], async () => {
      await expect(replica().resume(id, [result(2)], async () => 2)).rejects.toEqual(conflict);
      return 1;
    });
    await expect(here.resume(id, [result(2)], async () => 2)).rejects.toEqual(conflict);
    expect(await outcomesOf(id)).toEqual([{ result_json: "1" }, undefined]);
  });

  it("of calls that do not wait are refused, and nothing is stored", async () => {
    const here = replica();
    const { id, known } = await paused(isKnown ? here.programs : undefined);
    const refused = here.resume(id, [result(1, "call_009")], async () => 1);
    await expect(refused).rejects.toMatchObject({ details: [{ path: "tool_results[0].call_id" }] });
    expect((await here.programs.progress(id))?.text).toBe(known.text);
    expect(await entryOf(id)).toBe(null);
    expect((await here.resume(id, [result(1)], async () => 1)).answer).toBe(1);
  });

  it("are found by the replica that finishes the round of one that died", async () => {
    const here = replica();
    const { id } = await paused(isKnown ? here.programs : undefined);
    const dies = here.resume(id, [result(3)], async () => {
      throw new ServiceError("store_unavailable");
    });
    await expect(dies).rejects.toMatchObject({ code: "store_unavailable" });
    const { answer } = await replica().resume(id, [result(3)], async ({ known }) => known.progress.taken);
    expect(answer).toMatchObject({ tries: 1 });
    expect(await outcomesOf(id)).toEqual([{ result_json: "3" }, undefined]);
  });

  it("of a program that was cancelled meanwhile are refused", async () => {
    const here = replica();
    const { id, known } = await paused(isKnown ? here.programs : undefined);
    const to: Progress = { ...known.progress, status: "cancelled", waiting: [] };
    await replica().programs.advance(id, { from: known, to, lifeMs: LIFE_MS });
    const refused = here.resume(id, [result(1)], async () => 1);
    await expect(refused).rejects.toMatchObject({ code: "execution_expired" });
    expect(await outcomesOf(id)).toEqual([undefined, undefined]);
  });
});

describe("an answer that is kept with the end of its round", () => {
  const ended = (known: Known): Progress => ({ ...known.progress, status: "ended", waiting: [] });

  it("is given to the next request, and was there at once", async () => {
    const here = replica();
    const { id } = await paused(here.programs);
    const work = async ({ known }: Taken, entry: OwnEntry) => {
      const answer = { stdout: "1\n" };
      const change = { from: known, to: ended(known), lifeMs: LIFE_MS, entry, answer };
      expect(await here.programs.advance(id, change)).toBeDefined();
      expect(await entryOf(id)).toMatchObject({ answer });
      return answer;
    };
    expect(await here.resume(id, [result(1)], work)).toEqual({ answer: { stdout: "1\n" }, replayed: false });
    const repeated = await replica().resume(id, [result(1)], async () => "run twice");
    expect(repeated).toEqual({ answer: { stdout: "1\n" }, replayed: true });
    expect(await made.redis.pttl(answerKey(id, 1))).toBeGreaterThan(50_000);
  });

  it("is not kept when somebody else has moved the program on, nor in another request's entry", async () => {
    const here = replica();
    const { id } = await paused(here.programs);
    await here.resume(id, [result(1)], async ({ known }, entry) => {
      const change = { to: ended(known), lifeMs: LIFE_MS, entry, answer: "late" };
      const stale = { progress: known.progress, text: "{}" };
      expect(await here.programs.advance(id, { ...change, from: stale })).toBeUndefined();
      expect((await entryOf(id)).answer).toBeUndefined();
      await made.redis.set(answerKey(id, 1), '"another\'s"');
      expect(await here.programs.advance(id, { ...change, from: known })).toBeDefined();
      expect(await entryOf(id)).toBe("another's");
    });
  });
});
