import { MAX_PREFETCHED_GRANTS } from "@svc/contracts";
import { GrantPrefetch, UNUSED_MS } from "@svc/worker/grants/prefetch";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const FAR = Number.MAX_SAFE_INTEGER;

function make() {
  const givenUp: string[] = [];
  const ahead = new GrantPrefetch<string>((grant) => givenUp.push(grant));
  /** So many runs of an owner at a time; what they found ready. */
  const run = (owner: string, times: number, nowMs: number, untilMs = nowMs) =>
    Array.from({ length: times }, () => ahead.take(owner, untilMs, nowMs));
  /** Makes what is wanted: the names of the grants. */
  const refill = (owner: string, nowMs: number, endsMs = FAR) => {
    const count = ahead.begin(owner, nowMs);
    const grants = Array.from({ length: count }, (_, n) => `${owner}@${nowMs}.${n}`);
    ahead.made(owner, count, grants, endsMs);
    return grants;
  };
  return { ahead, givenUp, run, refill };
}

describe("grants for runs that may come", () => {
  it("are none for a run that comes alone", () => {
    const { ahead, run, refill } = make();
    expect(ahead.begin("a", 0)).toBe(0);
    for (const nowMs of [0, 1000, 2000]) {
      expect(run("a", 1, nowMs)).toEqual([undefined]);
      expect(refill("a", nowMs)).toEqual([]);
    }
  });

  it("are as many as the owner had other runs within a second, and no more than one request makes", () => {
    const { run, refill } = make();
    run("a", 4, 0);
    expect(refill("a", 0)).toHaveLength(3);
    run("b", 2, 0);
    run("b", 1, 1000);
    expect(refill("b", 1000)).toEqual([]);
    run("c", 100, 0);
    expect(refill("c", 0)).toHaveLength(MAX_PREFETCHED_GRANTS);
  });

  it("are given to their owner alone, each once, in the order in which they were made", () => {
    const { run, refill } = make();
    run("a", 3, 0);
    const made = refill("a", 0);
    expect(run("b", 1, 0)).toEqual([undefined]);
    expect(run("a", 3, 0)).toEqual([...made, undefined]);
  });

  it("are made anew when half of them are used, and not twice", () => {
    const { ahead, run, refill } = make();
    run("a", MAX_PREFETCHED_GRANTS + 1, 0);
    refill("a", 0);
    run("a", MAX_PREFETCHED_GRANTS / 2 - 1, 0);
    expect(ahead.begin("a", 0)).toBe(0);
    run("a", 1, 0);
    expect(ahead.begin("a", 0)).toBe(MAX_PREFETCHED_GRANTS / 2);
    expect(ahead.begin("a", 0)).toBe(0);
    ahead.made("a", MAX_PREFETCHED_GRANTS / 2, [], FAR);
    expect(ahead.begin("a", 0)).toBe(MAX_PREFETCHED_GRANTS / 2);
  });

  it("that would end before the run could are given up", () => {
    const { run, refill, givenUp } = make();
    run("a", 3, 0);
    const made = refill("a", 0, 1000);
    expect(run("a", 1, 0, 1001)).toEqual([undefined]);
    expect(givenUp).toEqual(made);
  });

  it("are given up when their owner has no run for some seconds, and others are kept", () => {
    const { ahead, run, refill, givenUp } = make();
    run("a", 2, 0);
    const made = refill("a", 0);
    run("b", 2, 1);
    const kept = refill("b", 1);
    ahead.expire(UNUSED_MS - 1);
    expect(givenUp).toEqual([]);
    ahead.expire(UNUSED_MS);
    expect(givenUp).toEqual(made);
    expect(ahead.isEmpty).toBe(false);
    expect(run("b", 1, UNUSED_MS)).toEqual(kept);
  });

  it("are given up with an owner who is the one too many, also those that are still being made", () => {
    const { ahead, run, refill, givenUp } = make();
    run("a", 2, 0);
    const made = refill("a", 0);
    run("b", 2, 0);
    const begun = ahead.begin("b", 0);
    for (let n = 0; n < 256; n++) run(`other ${n}`, 1, 0);
    expect(givenUp).toEqual(made);
    ahead.made("b", begun, ["late"], FAR);
    expect(givenUp).toEqual([...made, "late"]);
  });

  it("are all given up when the store may have lost them", () => {
    const { ahead, run, refill, givenUp } = make();
    for (const owner of ["a", "b"]) run(owner, 2, 0);
    const made = ["a", "b"].flatMap((owner) => refill(owner, 0));
    ahead.clear();
    expect(givenUp).toEqual(made);
    expect(ahead.isEmpty).toBe(true);
  });

  it("are given out or given up, each exactly once, whatever happens", () => {
    const step = fc.record({
      what: fc.constantFrom("take", "refill", "expire", "clear"),
      owner: fc.constantFrom("a", "b", "c"),
      pause: fc.integer({ min: 0, max: 3000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const { ahead, run, refill, givenUp } = make();
        const made: string[] = [];
        const taken: string[] = [];
        let nowMs = 0;
        for (const { what, owner, pause } of steps) {
          nowMs += pause;
          if (what === "expire") ahead.expire(nowMs);
          else if (what === "clear") ahead.clear();
          else if (what === "refill") made.push(...refill(owner, nowMs, nowMs + 4000));
          else
            taken.push(
              ...run(owner, 3, nowMs, nowMs + 1000).filter((each): each is string => each !== undefined),
            );
        }
        ahead.clear();
        expect([...taken, ...givenUp].sort()).toEqual([...made].sort());
      }),
    );
  });
});
