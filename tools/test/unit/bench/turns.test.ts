import { setTimeout as sleep } from "node:timers/promises";
import {
  BLOCKS_PER_GROUP,
  byThemselves,
  type Case,
  firstRuns,
  type Group,
  inTurn,
  TURNS,
} from "@svc/tools/bench/turns";
import { describe, expect, it } from "vitest";

/** Cases that write down when they run; each run takes as many milliseconds as there were before it. */
function recorded(): { ran: string[]; caseOf: (name: string, n: number, warmUp?: number) => Case } {
  const ran: string[] = [];
  const caseOf = (name: string, n: number, warmUp = 0): Case => ({
    name,
    n,
    warmUp,
    sample: async () => ran.push(name) - 1,
  });
  return { ran, caseOf };
}

const groupOf = (cases: Case[], alternates = false): Group => ({ cases, alternates });

/** Lengths of the runs of equal words. */
function stretches(words: readonly string[]): [word: string, length: number][] {
  const result: [string, number][] = [];
  for (const word of words) {
    const last = result.at(-1);
    if (last?.[0] === word) last[1]++;
    else result.push([word, 1]);
  }
  return result;
}

describe("first runs", () => {
  it("are taken case by case, in their order", async () => {
    const { ran, caseOf } = recorded();
    const cases = [
      { ...caseOf("b", 10), firstRuns: 3 },
      { ...caseOf("a", 10), firstRuns: 2 },
      { ...caseOf("c", 10), firstRuns: 0 },
    ];
    const told: string[] = [];
    const times = await firstRuns(cases, 60_000, (name) => told.push(name));
    expect(ran).toEqual(["b", "b", "b", "a", "a"]);
    expect([...times]).toEqual([
      ["b", [0, 1, 2]],
      ["a", [3, 4]],
      ["c", []],
    ]);
    expect(told).toEqual(["b", "a", "c"]);
  });

  it("end when they have taken long enough", async () => {
    const slow: Case = { name: "slow", n: 10, warmUp: 0, sample: () => sleep(30, 30) };
    const times = await firstRuns([{ ...slow, firstRuns: 1000 }], 100, () => undefined);
    const taken = times.get("slow")?.length ?? 0;
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(6);
  });
});

describe("groups by themselves", () => {
  it("have nothing else between their turns, in two blocks each", async () => {
    const { ran, caseOf } = recorded();
    const groups = [
      groupOf([caseOf("a1", 40), caseOf("a2", 40)]),
      groupOf([caseOf("b1", 40), caseOf("b2", 40)]),
      groupOf([caseOf("c1", 40)]),
    ];
    const summaries = await byThemselves(groups, () => undefined);
    const blocks = ran.map((name, at) => `${name[0]}${Math.floor(at / (ran.length / BLOCKS_PER_GROUP))}`);
    expect(stretches(blocks).length).toBe(groups.length * BLOCKS_PER_GROUP);
    expect([...summaries.values()].map(({ n }) => n)).toEqual(Array.from({ length: 5 }, () => 40));
  });

  it("are warmed up before each block, and that is no sample", async () => {
    const { ran, caseOf } = recorded();
    const blocks: number[] = [];
    const groups = [groupOf([caseOf("a", 20, 7)])];
    const summaries = await byThemselves(groups, (done) => blocks.push(done));
    expect(blocks).toEqual([1, 2]);
    expect(ran.length).toBe(20 + BLOCKS_PER_GROUP * 7);
    const range = (first: number) => Array.from({ length: 10 }, (_, index) => first + index);
    expect(summaries.get("a")?.samples).toEqual([...range(7), ...range(24)]);
  });

  it("let their cases run in short turns", async () => {
    const { ran, caseOf } = recorded();
    await byThemselves([groupOf([caseOf("a", 50), caseOf("b", 50)])], () => undefined);
    // Two turns of the same case may meet, since their order is random.
    for (const [, length] of stretches(ran)) expect([5, 10]).toContain(length);
  });

  it("alternate sample by sample where a group says so, in their warm-up too", async () => {
    const { ran, caseOf } = recorded();
    await byThemselves([groupOf([caseOf("a", 50, 5), caseOf("b", 50, 5)], true)], () => undefined);
    for (let at = 0; at < ran.length; at += 2) expect(ran.slice(at, at + 2).toSorted()).toEqual(["a", "b"]);
  });
});

describe("groups in turn", () => {
  it("have turns of all others between their own", async () => {
    const { ran, caseOf } = recorded();
    const names = ["a", "b", "c", "d"];
    const turns: number[] = [];
    const groups = names.map((name) => groupOf([caseOf(name, 20, 100)]));
    const summaries = await inTurn(groups, (done) => turns.push(done));
    expect(turns.length).toBe(TURNS);
    for (let turn = 0; turn < TURNS; turn++) {
      const one = stretches(ran.slice(turn * 8, turn * 8 + 8));
      expect(one.toSorted()).toEqual(names.map((name) => [name, 2]));
    }
    expect(summaries.get("d")?.n).toBe(20);
  });

  it("spread the few samples of a slow case over the turns", async () => {
    const { ran, caseOf } = recorded();
    const summaries = await inTurn([groupOf([caseOf("slow", 3), caseOf("quick", 100)])], () => undefined);
    expect(summaries.get("slow")?.n).toBe(3);
    expect(stretches(ran).filter(([name, length]) => name === "slow" && length > 1)).toEqual([]);
  });
});
