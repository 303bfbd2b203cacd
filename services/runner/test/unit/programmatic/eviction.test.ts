import {
  AVAILABLE_SHARE,
  machineMemory,
  PAUSED_SHARE,
  selectEvictions,
} from "@svc/runner/programmatic/eviction";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const pausedArbitrary = fc.array(
  fc.record({ principal: fc.constant("one"), pausedAtMs: fc.nat(), memoryBytes: fc.nat({ max: 1000 }) }),
  { maxLength: 20 },
);
/** No share of its own for a principal. */
const upTo = (maxPaused: number) => ({ maxPaused, maxPerPrincipal: maxPaused });
const machineArbitrary = fc
  .record({ totalBytes: fc.integer({ min: 1, max: 10_000 }), part: fc.nat({ max: 100 }) })
  .map(({ totalBytes, part }) => ({ totalBytes, availableBytes: (totalBytes * part) / 100 }));

describe("the paused programs of one principal that are evicted", () => {
  it("are the longest paused, as few as it takes", () => {
    const property = fc.property(
      pausedArbitrary,
      fc.nat({ max: 20 }),
      machineArbitrary,
      (paused, max, machine) => {
        const chosen = selectEvictions(paused, { maxPaused: max, maxPerPrincipal: 20 }, machine);
        const gone = new Set(chosen.map(({ program }) => program));
        const kept = paused.filter((program) => !gone.has(program));
        const youngestGone = Math.max(
          Number.NEGATIVE_INFINITY,
          ...chosen.map(({ program }) => program.pausedAtMs),
        );
        expect(kept.every(({ pausedAtMs }) => pausedAtMs >= youngestGone)).toBe(true);
        const fits = (rest: typeof paused) => {
          const held = rest.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
          const freed = paused.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0) - held;
          return (
            rest.length <= max &&
            held <= PAUSED_SHARE * machine.totalBytes &&
            machine.availableBytes + freed >= AVAILABLE_SHARE * machine.totalBytes
          );
        };
        expect(fits(kept) || kept.length === 0).toBe(true);
        const last = chosen.at(-1)?.program;
        if (last !== undefined) expect(fits([...kept, last])).toBe(false);
      },
    );
    fc.assert(property);
  });

  it("are told why they go", () => {
    const [old, young] = [
      { principal: "one", pausedAtMs: 1, memoryBytes: 10 },
      { principal: "one", pausedAtMs: 2, memoryBytes: 60 },
    ] as const;
    const machine = { totalBytes: 100, availableBytes: 50 };
    expect(selectEvictions([young, old], { maxPaused: 1, maxPerPrincipal: 2 }, machine)).toEqual([
      { program: old, cause: "max_paused" },
      { program: young, cause: "memory" },
    ]);
    expect(selectEvictions([old], upTo(1), { ...machine, availableBytes: 9 })).toEqual([
      { program: old, cause: "memory" },
    ]);
    expect(selectEvictions([old], upTo(1), machine)).toEqual([]);
  });
});

describe("the paused programs of several principals", () => {
  const machine = { totalBytes: 1000, availableBytes: 900 };
  const many = fc.array(
    fc.record({
      principal: fc.constantFrom("a", "b", "c", "d", "e", "f"),
      pausedAtMs: fc.nat(),
      memoryBytes: fc.nat({ max: 20 }),
    }),
    { maxLength: 40 },
  );
  const countsOf = (programs: readonly { principal: string }[]) => {
    const counts = new Map<string, number>();
    for (const { principal } of programs) counts.set(principal, (counts.get(principal) ?? 0) + 1);
    return counts;
  };

  it("are never more than their share, and nobody loses one while another holds more", () => {
    fc.assert(
      fc.property(many, fc.integer({ min: 1, max: 12 }), fc.nat({ max: 20 }), (paused, share, max) => {
        const chosen = selectEvictions(paused, { maxPaused: max, maxPerPrincipal: share }, machine);
        const gone = new Set(chosen.map(({ program }) => program));
        const kept = paused.filter((program) => !gone.has(program));
        const counts = countsOf(kept);
        for (const count of counts.values()) expect(count).toBeLessThanOrEqual(share);
        expect(kept.length).toBeLessThanOrEqual(max);
        for (const { program, cause } of chosen) {
          if (cause !== "max_paused") continue;
          const own = counts.get(program.principal) ?? 0;
          for (const count of counts.values()) expect(count).toBeLessThanOrEqual(own + 1);
          const older = kept.filter(({ principal, pausedAtMs }) => {
            return principal === program.principal && pausedAtMs < program.pausedAtMs;
          });
          expect(older).toEqual([]);
        }
        if (paused.length <= max && [...countsOf(paused).values()].every((count) => count <= share)) {
          expect(chosen.filter(({ cause }) => cause !== "memory")).toEqual([]);
        }
      }),
    );
  });

  it.each([
    ["16 of 32", { maxPaused: 32, maxPerPrincipal: 16 }, 0],
    ["no share of its own", { maxPaused: 32, maxPerPrincipal: 32 }, 0],
    ["large programs", { maxPaused: 32, maxPerPrincipal: 32 }, 400],
  ])("of five stay while a sixth floods: %s", (_, limits, memoryBytes) => {
    const others = ["a", "b", "c", "d", "e"].flatMap((principal, at) =>
      [0, 1, 2, 3, 4].map((n) => ({ principal, pausedAtMs: 10 * at + n, memoryBytes: 10 })),
    );
    let paused = others;
    for (let at = 0; at < 200; at++) {
      paused = [...paused, { principal: "flood", pausedAtMs: 100 + at, memoryBytes }];
      const gone = new Set(selectEvictions(paused, limits, machine).map(({ program }) => program));
      expect([...gone].map(({ principal }) => principal).filter((name) => name !== "flood")).toEqual([]);
      paused = paused.filter((program) => !gone.has(program));
    }
    expect(paused.slice(0, others.length)).toEqual(others);
  });
});

describe("the machine's memory", () => {
  it("is read as it is", () => {
    const { totalBytes, availableBytes } = machineMemory();
    expect(totalBytes).toBeGreaterThan(2 ** 26);
    expect(availableBytes).toBeGreaterThan(0);
    expect(availableBytes).toBeLessThanOrEqual(totalBytes);
  });
});
