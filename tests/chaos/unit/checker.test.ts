import { describe, expect, test } from "vitest";
import {
  type Ended,
  type Outcome,
  type Step,
  violations,
  violationsOfPair,
  violationsOfSession,
} from "../checker.ts";
import type { Fault } from "../schedule.ts";

const RULES = { longestMs: 40_000, healingMs: 5000, slots: 2 };
const KILL: Fault = { atMs: 10_000, forMs: 0, what: "kill", where: "runner" };
const KILL_API: Fault = { ...KILL, where: "api" };
const EMPTY: Fault = { atMs: 10_000, forMs: 0, what: "empty", where: "redis" };

const ended = (outcome: Outcome, fromMs = 9000, toMs = 11_000): Ended => ({
  token: "t-1-1-t",
  kind: "plain",
  fromMs,
  toMs,
  outcome,
});
const refused = (status: number, code: string, retryAfter: string | null = null) =>
  ended({ as: "refused", status, code, retryAfter });
const found = (one: Ended, ...faults: Fault[]) => violations([one], faults, RULES).join();

describe("a request", () => {
  test("that is answered right, or left by its client, is well", () => {
    expect(found(ended({ as: "right" }))).toBe("");
    expect(found(ended({ as: "left" }))).toBe("");
  });

  test("is never answered wrong, not at all, or late", () => {
    expect(found(ended({ as: "wrong", found: "another's" }), KILL)).toContain("wrong: another's");
    expect(found(ended({ as: "silent" }), KILL)).toContain("no answer at all");
    expect(found(ended({ as: "right" }, 0, 40_001), KILL)).toContain("no answer within 40000 ms");
  });

  test("is refused only while something is wrong, or soon after", () => {
    const one = refused(502, "sandbox_execution_failed");
    expect(found(one, KILL)).toBe("");
    expect(found(one, { ...KILL, atMs: 4001 })).toBe("");
    expect(found(one, { ...KILL, atMs: 3000, forMs: 1001 })).toBe("");
    expect(found(one, { ...KILL, atMs: 3999 })).toContain("though nothing was wrong");
    expect(found(one, { ...KILL, atMs: 11_001 })).toContain("though nothing was wrong");
  });

  test("is not refused for a small step of a clock, and for a large one until the time has come that it showed", () => {
    const one = refused(502, "sandbox_setup_failed");
    const step = (byMs: number, atMs: number): Fault => ({
      atMs,
      forMs: 0,
      what: "step",
      where: "worker",
      byMs,
    });
    expect(found(one, step(6000, 9000))).toContain("though nothing was wrong");
    expect(found(one, step(-6000, 9000))).toContain("though nothing was wrong");
    expect(found(one, step(40_000, 9000))).toBe("");
    expect(found(ended(one.outcome, 54_000, 55_000), step(-40_000, 9000))).toBe("");
    expect(found(ended(one.outcome, 54_001, 55_000), step(40_000, 9000))).toContain(
      "though nothing was wrong",
    );
  });

  test("is refused with a code for callers, and told when to come again", () => {
    expect(found(refused(503, "queue_saturated", "2"), KILL)).toBe("");
    expect(found(refused(429, "rate_limited", "2"), KILL)).toBe("");
    expect(found(refused(503, "queue_saturated"), KILL)).toContain("without Retry-After");
    expect(found(refused(500, "no_such_code"), KILL)).toContain("unknown code");
    expect(found(refused(504, "deadline_exceeded"), KILL)).toContain("told between components");
    expect(found(refused(404, "file_not_found"), KILL)).toContain("as if the caller were wrong");
  });

  test("of a paused program may be unknown only to a Redis that lost what it held", () => {
    const one = { ...refused(400, "execution_expired"), kind: "resume" };
    expect(found(one, KILL)).toContain("as if the caller were wrong");
    expect(found(one, EMPTY)).toBe("");
    expect(found({ ...one, kind: "plain" }, EMPTY)).toContain("as if the caller were wrong");
  });

  test("loses its connection only with the API", () => {
    const one = ended({ as: "lost", why: "reset" });
    expect(found(one, KILL_API)).toBe("");
    expect(found(one, KILL)).toContain("though no API ended");
    expect(found(one, { ...KILL_API, atMs: 8999 })).toContain("though no API ended");
  });
});

test("no more programs run at once than there are slots", () => {
  const ran = (fromMs: number, toMs: number) => ended({ as: "right", ran: { fromMs, toMs } });
  expect(violations([ran(0, 10), ran(5, 15), ran(10, 20)], [], RULES)).toEqual([]);
  expect(violations([ran(0, 10), ran(5, 15), ran(9, 20)], [], RULES)).toEqual([
    "more than 2 programs ran at once",
  ]);
});

test("one key means one execution, unless its answer could not be kept", () => {
  const pair = { token: "t", fromMs: 9000, toMs: 11_000, isSame: false };
  expect(violationsOfPair({ ...pair, isSame: true }, [], RULES)).toEqual([]);
  expect(violationsOfPair(pair, [KILL], RULES)).toHaveLength(1);
  for (const fault of [KILL_API, EMPTY, { ...KILL, what: "cut", where: "api>redis" } as const])
    expect(violationsOfPair(pair, [fault], RULES)).toEqual([]);
});

describe("a session", () => {
  const kept = (count: number): Partial<Step> => ({ found: count, persisted: true });
  const unkept = (count: number): Partial<Step> => ({ found: count, persisted: false });
  const unknown: Partial<Step> = {};
  const conflict = (count: number): Partial<Step> => ({ found: count, persisted: false, conflict: true });
  const unrestored: Partial<Step> = { found: 0, persisted: false, restoreFailed: true };
  /** Steps of a second each. */
  const problems = (steps: Partial<Step>[], ...faults: Fault[]) =>
    violationsOfSession(
      "s",
      steps.map((step, at) => ({ fromMs: at * 1000, toMs: at * 1000 + 999, ...step })),
      faults,
    );

  test.each<[string, Partial<Step>[]]>([
    ["goes from state to state", [kept(0), kept(1), kept(2)]],
    ["stays where it was when a step is not kept", [kept(0), unkept(1), kept(1)]],
    ["may have moved when it is not known how a step ended", [kept(0), unknown, kept(2)]],
    ["or may not", [kept(0), unknown, kept(1)]],
    ["moves beside a later step, which is told of it", [kept(0), unknown, conflict(1), kept(2)]],
    ["moves beside a later step that is not kept", [kept(0), unknown, unkept(1), kept(2)]],
    ["is there again after a restore that failed", [kept(0), unrestored, kept(1)]],
  ])("%s", (_what, steps) => {
    expect(problems(steps)).toEqual([]);
  });

  test.each<[string, Partial<Step>[]]>([
    ["that was kept is gone", [kept(0), kept(0)]],
    ["that was not kept is there", [kept(0), unkept(1), kept(2)]],
    ["is one that never was", [kept(0), kept(2)]],
    ["is an older one", [kept(0), kept(1), kept(1)]],
    ["met a run that nobody sent", [kept(0), conflict(1)]],
    ["is that of a step that ended behind a later one", [unknown, kept(1), kept(1)]],
    ["is saved after a restore that failed", [kept(0), { ...unrestored, persisted: true }]],
  ])("whose state %s is told of", (_what, steps) => {
    expect(problems(steps)).toHaveLength(1);
  });

  test("begins anew only where Redis lost what it held", () => {
    const steps = [...Array.from({ length: 11 }, (_, at) => kept(at)), kept(0)];
    expect(problems(steps)).toHaveLength(1);
    expect(problems(steps, EMPTY)).toEqual([]);
    expect(problems(steps, KILL)).toHaveLength(1);
  });
});
