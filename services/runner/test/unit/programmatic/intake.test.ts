import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Intake } from "../../../src/programmatic/intake.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function made() {
  const issued: number[] = [];
  const intake = new Intake<number>((item) => issued.push(item));
  return { issued, intake };
}

describe("requests", () => {
  it("are issued in the order of their connections, whatever order they are complete in", () => {
    const property = fc.property(
      fc
        .array(fc.boolean(), { minLength: 1, maxLength: 20 })
        .chain((spoken) =>
          fc.tuple(
            fc.constant(spoken),
            fc.shuffledSubarray([...spoken.keys()], { minLength: spoken.length }),
          ),
        ),
      ([spoken, order]) => {
        const { issued, intake } = made();
        const places = spoken.map(() => intake.accepted());
        for (const at of order) {
          if (spoken[at]) intake.complete(places[at] as number, at);
          else intake.gone(places[at] as number);
        }
        expect(issued).toEqual([...spoken.keys()].filter((at) => spoken[at]));
        expect(intake.waiting).toBe(0);
      },
    );
    fc.assert(property);
  });

  it("wait for an earlier connection for a moment only, and it may still come", () => {
    const { issued, intake } = made();
    const [silent, spoken] = [intake.accepted(), intake.accepted()];
    intake.complete(spoken, 2);
    vi.advanceTimersByTime(19);
    expect(issued).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(issued).toEqual([2]);
    const next = intake.accepted();
    intake.complete(next, 3);
    expect(issued).toEqual([2, 3]);
    intake.complete(silent, 1);
    expect(issued).toEqual([2, 3, 1]);
    expect(intake.waiting).toBe(0);
  });

  it("are all issued when nothing more can come", () => {
    const { issued, intake } = made();
    const [, second, third] = [intake.accepted(), intake.accepted(), intake.accepted()];
    intake.complete(third as number, 3);
    intake.complete(second as number, 2);
    intake.flush();
    expect(issued).toEqual([2, 3]);
    expect(intake.waiting).toBe(1);
  });

  it("are issued once, also when their connection is closed afterwards or while they wait", () => {
    const { issued, intake } = made();
    const [first, second] = [intake.accepted(), intake.accepted()];
    intake.complete(second, 2);
    intake.gone(second);
    intake.complete(second, 2);
    intake.gone(first);
    expect(issued).toEqual([2]);
  });
});
