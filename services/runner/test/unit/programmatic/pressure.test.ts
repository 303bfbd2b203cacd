import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AVAILABLE_SHARE, machineMemory, PAUSED_SHARE, victims } from "../../../src/programmatic/pressure.ts";

const pausedArbitrary = fc.array(fc.record({ pausedAtMs: fc.nat(), memoryBytes: fc.nat({ max: 1000 }) }), {
  maxLength: 20,
});
const machineArbitrary = fc
  .record({ totalBytes: fc.integer({ min: 1, max: 10_000 }), part: fc.nat({ max: 100 }) })
  .map(({ totalBytes, part }) => ({ totalBytes, availableBytes: (totalBytes * part) / 100 }));

describe("the paused programs that have to go", () => {
  it("are the longest paused, as few as it takes", () => {
    const property = fc.property(
      pausedArbitrary,
      fc.nat({ max: 20 }),
      machineArbitrary,
      (paused, max, machine) => {
        const chosen = victims(paused, max, machine);
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
      { pausedAtMs: 1, memoryBytes: 10 },
      { pausedAtMs: 2, memoryBytes: 60 },
    ] as const;
    const machine = { totalBytes: 100, availableBytes: 50 };
    expect(victims([young, old], 1, machine)).toEqual([
      { program: old, cause: "max_paused" },
      { program: young, cause: "memory" },
    ]);
    expect(victims([old], 1, { ...machine, availableBytes: 9 })).toEqual([{ program: old, cause: "memory" }]);
    expect(victims([old], 1, machine)).toEqual([]);
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
