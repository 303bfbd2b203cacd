/** Accepting the results of a pause, and keeping the answer, are one step each; two replicas over a real Redis. */
import { setTimeout as sleep } from "node:timers/promises";
import { Once, type OwnEntry } from "@svc/api/once/once";
import { AcceptedResults } from "@svc/api/programmatic/accept-results";
import { roundAnswerKey } from "@svc/api/programmatic/expiry";
import { programmaticMetrics } from "@svc/api/programmatic/metrics";
import type { Program, ProgramRecord } from "@svc/api/programmatic/state";
import { ProgramStore, type Snapshot, type Stored } from "@svc/api/programmatic/store";
import { historyKey, newId, ServiceError, type ToolResult } from "@svc/contracts";
import { createRegistry, type Redis } from "@svc/service-kit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
  const store = new ProgramStore(redis);
  const once = new Once(redis, { conflict: "continuation_conflict", storedSeconds: 60 });
  const metrics = programmaticMetrics(createRegistry());
  /** A resume whose round is `work`. */
  const resume = (
    id: string,
    results: readonly ToolResult[],
    work: (stored: Stored, entry: OwnEntry) => Promise<unknown>,
  ) => {
    const one = new AcceptedResults({ config, store, metrics }, { executionId: id, round: 1 }, results);
    const asked = {
      store: roundAnswerKey(id, 1),
      body: one.digest,
      left: never(),
    };
    return once.run(asked, async ({ entry }) => work(await one.accept(), entry));
  };
  return { store, resume };
}

const result = (value: unknown, call_id = "call_001"): ToolResult => ({ call_id, result: value });

/** A program that paused with two calls. */
async function paused() {
  const { store } = replica();
  const id = newId();
  const program = { v: 1, execution_id: id, code: "print(1)" } as Program;
  const to: ProgramRecord = {
    status: "paused",
    round: 1,
    pending: [1, 2].map((number) => ({ call_id: `call_00${number}`, at: number - 1 })),
    runner_url: "http://127.0.0.1:1",
    paused_at: Date.now(),
    run_ms: 1,
    calls: 2,
    history_bytes: 0,
    state_bytes: 100,
  };
  const added = to.pending.map(({ call_id }) => ({ call_id, name: "add", input_json: "{}" }));
  const snapshot = await store.transition(id, { from: undefined, to, lifeMs: LIFE_MS, program, added });
  if (snapshot === undefined) throw new Error("the program was there before");
  return { id, program, snapshot };
}

const outcomesOf = async (id: string) =>
  (await made.redis.lrange(historyKey(id), 0, -1)).map((text) => JSON.parse(text).outcome);
const entryOf = async (id: string) => JSON.parse((await made.redis.get(roundAnswerKey(id, 1))) ?? "null");

describe("results of a paused program", () => {
  it("are stored before the round is made, once for many requests at once", async () => {
    const here = replica();
    const { id, program } = await paused();
    const other = replica();
    let rounds = 0;
    const work = async ({ program: found, snapshot }: Stored) => {
      rounds++;
      expect(found).toEqual(program);
      expect(snapshot.record).toMatchObject({ status: "resuming", attempt: { mode: "live", number: 1 } });
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
    const { id } = await paused();
    const conflict = expect.objectContaining({ code: "continuation_conflict" });
    await here.resume(id, [result(1)], async () => {
      await expect(replica().resume(id, [result(2)], async () => 2)).rejects.toEqual(conflict);
      return 1;
    });
    await expect(here.resume(id, [result(2)], async () => 2)).rejects.toEqual(conflict);
    expect(await outcomesOf(id)).toEqual([{ result_json: "1" }, undefined]);
  });

  it("are refused for calls that are not pending, and nothing is stored", async () => {
    const here = replica();
    const { id, snapshot } = await paused();
    const refused = here.resume(id, [result(1, "call_009")], async () => 1);
    await expect(refused).rejects.toMatchObject({ details: [{ path: "tool_results[0].call_id" }] });
    expect((await here.store.read(id)).snapshot?.text).toBe(snapshot.text);
    expect(await entryOf(id)).toBe(null);
    expect((await here.resume(id, [result(1)], async () => 1)).answer).toBe(1);
  });

  it("are found by the replica that finishes the round of one that died", async () => {
    const here = replica();
    const { id } = await paused();
    const dies = here.resume(id, [result(3)], async () => {
      throw new ServiceError("store_unavailable");
    });
    await expect(dies).rejects.toMatchObject({ code: "store_unavailable" });
    const { answer } = await replica().resume(
      id,
      [result(3)],
      async ({ snapshot }) => snapshot.record.attempt,
    );
    expect(answer).toMatchObject({ number: 1 });
    expect(await outcomesOf(id)).toEqual([{ result_json: "3" }, undefined]);
  });

  it("are refused when the program was cancelled meanwhile", async () => {
    const here = replica();
    const { id, snapshot } = await paused();
    const to: ProgramRecord = { ...snapshot.record, status: "cancelled", pending: [] };
    await replica().store.transition(id, { from: snapshot, to, lifeMs: LIFE_MS });
    const refused = here.resume(id, [result(1)], async () => 1);
    await expect(refused).rejects.toMatchObject({ code: "execution_expired" });
    expect(await outcomesOf(id)).toEqual([]);
  });
});

describe("an answer that is kept with the end of its round", () => {
  const ended = ({ record }: Snapshot): ProgramRecord => ({ ...record, status: "completed", pending: [] });

  it("is given to the next request, and was there at once", async () => {
    const here = replica();
    const { id } = await paused();
    const work = async ({ snapshot }: Stored, entry: OwnEntry) => {
      const answer = { stdout: "1\n" };
      const change = { from: snapshot, to: ended(snapshot), lifeMs: LIFE_MS, entry, answer };
      expect(await here.store.transition(id, change)).toBeDefined();
      expect(await entryOf(id)).toMatchObject({ answer });
      return answer;
    };
    expect(await here.resume(id, [result(1)], work)).toEqual({ answer: { stdout: "1\n" }, replayed: false });
    const repeated = await replica().resume(id, [result(1)], async () => "run twice");
    expect(repeated).toEqual({ answer: { stdout: "1\n" }, replayed: true });
    expect(await made.redis.pttl(roundAnswerKey(id, 1))).toBeGreaterThan(50_000);
  });

  it("is not kept after another request's transition", async () => {
    const here = replica();
    const { id } = await paused();
    await here.resume(id, [result(1)], async ({ snapshot }, entry) => {
      const change = { to: ended(snapshot), lifeMs: LIFE_MS, entry, answer: "late" };
      const stale = { record: snapshot.record, text: "{}" };
      expect(await here.store.transition(id, { ...change, from: stale })).toBeUndefined();
      expect((await entryOf(id)).answer).toBeUndefined();
    });
  });

  it("is kept although the entry lapsed while the round was made", async () => {
    const here = replica();
    const { id } = await paused();
    await here.resume(id, [result(1)], async ({ snapshot }, entry) => {
      await made.redis.del(roundAnswerKey(id, 1));
      const change = { from: snapshot, to: ended(snapshot), lifeMs: LIFE_MS, entry, answer: "late" };
      expect(await here.store.transition(id, change)).toBeDefined();
      return "late";
    });
    const repeated = await replica().resume(id, [result(1)], async () => "run twice");
    expect(repeated).toEqual({ answer: "late", replayed: true });
  });

  it("is given to a request that claimed the lapsed entry and makes the same round", async () => {
    const [here, other] = [replica(), replica()];
    const { id } = await paused();
    const [isClaimed, isAnswered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = here.resume(id, [result(1)], async ({ snapshot }, entry) => {
      await made.redis.del(roundAnswerKey(id, 1));
      await isClaimed.promise;
      const change = { from: snapshot, to: ended(snapshot), lifeMs: LIFE_MS, entry, answer: "first" };
      expect(await here.store.transition(id, change)).toBeDefined();
      isAnswered.resolve();
      return "first";
    });
    await expect.poll(() => entryOf(id)).toBeNull();
    const second = other.resume(id, [result(1)], async ({ snapshot }, entry) => {
      isClaimed.resolve();
      await isAnswered.promise;
      const change = { from: snapshot, to: ended(snapshot), lifeMs: LIFE_MS, entry, answer: "second" };
      expect(await other.store.transition(id, change)).toBeUndefined();
      throw new ServiceError("execution_cancelled");
    });
    expect(await first).toEqual({ answer: "first", replayed: false });
    expect(await second).toEqual({ answer: "first", replayed: true });
  });
});

/** A connection whose answers to this command are lost: it is sent again. */
const sendingTwice = (command: string): Redis =>
  new Proxy(made.redis, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name !== command) return value.bind(target);
      return async (...args: unknown[]) => {
        await value.apply(target, args);
        return value.apply(target, args);
      };
    },
  });

describe("a command that reached the store, but not the answer to it", () => {
  it("owns the entry that it claimed when it is sent again, and does not wait for itself", async () => {
    const once = new Once(sendingTwice("set"), { conflict: "continuation_conflict", storedSeconds: 60 });
    const asked = { store: `once:${newId()}`, body: "b", left: AbortSignal.timeout(5_000) };
    expect(await once.run(asked, async () => "done")).toEqual({ answer: "done", replayed: false });
  });

  it("has made its transition when it is sent again, once; another one from the same record has not", async () => {
    const { id, snapshot } = await paused();
    const store = new ProgramStore(sendingTwice("svcTransition"));
    const to: ProgramRecord = { ...snapshot.record, status: "resuming" };
    const change = {
      from: snapshot,
      to,
      lifeMs: LIFE_MS,
      outcomes: [{ at: 0, outcome: { result_json: "7" } }],
    };
    expect((await store.transition(id, change))?.record).toEqual(to);
    expect(await outcomesOf(id)).toEqual([{ result_json: "7" }, undefined]);
    expect(await store.transition(id, change)).toBeUndefined();
  });
});
