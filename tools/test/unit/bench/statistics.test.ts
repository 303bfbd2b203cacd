import { percentile, shuffled, summarize, windowsOf } from "@svc/tools/bench/statistics";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const samples = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 200 });

describe("percentile", () => {
  it("is the nearest rank", () => {
    const sorted = Array.from({ length: 100 }, (_, index) => index + 1);
    expect([0, 0.5, 0.95, 0.99, 1].map((share) => percentile(sorted, share))).toEqual([1, 50, 95, 99, 100]);
    expect(percentile([7], 0.99)).toBe(7);
  });

  it("is always one of the samples, with the given share at or below it", () => {
    fc.assert(
      fc.property(samples, fc.double({ min: 0, max: 1, noNaN: true }), (values, share) => {
        const sorted = [...values].sort((left, right) => left - right);
        const value = percentile(sorted, share);
        const below = sorted.filter((sample) => sample <= value).length;
        return sorted.includes(value) && below >= Math.floor(share * sorted.length);
      }),
    );
  });
});

describe("summarize", () => {
  it("does not depend on the order of the samples", () => {
    expect(summarize([3, 1, 2])).toEqual({
      samples: [3, 1, 2],
      n: 3,
      min: 1,
      p50: 2,
      p95: 3,
      p99: 3,
      max: 3,
      mean: 2,
    });
  });

  it("keeps min, percentiles and max in order", () => {
    fc.assert(
      fc.property(samples, (values) => {
        const { min, p50, p95, p99, max } = summarize(values);
        return min <= p50 && p50 <= p95 && p95 <= p99 && p99 <= max;
      }),
    );
  });
});

describe("shuffled", () => {
  it("keeps every item once and the original as it was", () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (items) => {
        const before = [...items];
        const after = shuffled(items);
        const inOrder = (list: readonly number[]) => [...list].sort((left, right) => left - right);
        expect(inOrder(after)).toEqual(inOrder(items));
        expect(items).toEqual(before);
      }),
    );
  });

  it("can put any item first", () => {
    const firsts = new Set(Array.from({ length: 500 }, () => shuffled([1, 2, 3, 4])[0]));
    expect(firsts.size).toBe(4);
  });
});

describe("windowsOf", () => {
  it("takes the median of each window that is full", () => {
    const values = Array.from({ length: 299 }, (_, index) => index + 1);
    expect(windowsOf(values)).toEqual([
      { first: 1, last: 20, p50: 10 },
      { first: 21, last: 100, p50: 60 },
    ]);
    expect(windowsOf(values.slice(0, 19))).toEqual([]);
  });
});
