import { ArrivalOrder } from "@svc/runner/programmatic/arrival-order";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function made() {
  const issued: number[] = [];
  const order = new ArrivalOrder<number>((item) => issued.push(item));
  return { issued, order };
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
      ([spoken, sequence]) => {
        const { issued, order } = made();
        const places = spoken.map(() => order.accepted());
        for (const at of sequence) {
          if (spoken[at]) order.complete(places[at] as number, at);
          else order.gone(places[at] as number);
        }
        expect(issued).toEqual([...spoken.keys()].filter((at) => spoken[at]));
        expect(order.waiting).toBe(0);
      },
    );
    fc.assert(property);
  });

  it("wait for an earlier connection for a moment only, and it may still come", () => {
    const { issued, order } = made();
    const [silent, spoken] = [order.accepted(), order.accepted()];
    order.complete(spoken, 2);
    vi.advanceTimersByTime(19);
    expect(issued).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(issued).toEqual([2]);
    const next = order.accepted();
    order.complete(next, 3);
    expect(issued).toEqual([2, 3]);
    order.complete(silent, 1);
    expect(issued).toEqual([2, 3, 1]);
    expect(order.waiting).toBe(0);
  });

  it("are all issued when nothing more can come", () => {
    const { issued, order } = made();
    const [, second, third] = [order.accepted(), order.accepted(), order.accepted()];
    order.complete(third as number, 3);
    order.complete(second as number, 2);
    order.flush();
    expect(issued).toEqual([2, 3]);
    expect(order.waiting).toBe(1);
  });

  it("are issued once, also when their connection is closed afterwards or while they wait", () => {
    const { issued, order } = made();
    const [first, second] = [order.accepted(), order.accepted()];
    order.complete(second, 2);
    order.gone(second);
    order.complete(second, 2);
    order.gone(first);
    expect(issued).toEqual([2]);
  });
});
