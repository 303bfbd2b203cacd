import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { shrink } from "../shrink.ts";

const numbers = (many: number) => Array.from({ length: many }, (_, at) => at);

describe("the shortest list that still fails", () => {
  test("is what is needed and nothing else, whatever is needed", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.nat(39), { maxLength: 4 }),
        async (many, picked) => {
          const needed = [...new Set(picked.map((at) => at % many))].sort((a, b) => a - b);
          const { items } = await shrink(
            numbers(many),
            async (some) => needed.every((one) => some.includes(one)),
            10_000,
          );
          expect(items).toEqual(needed);
        },
      ),
    );
  });

  test("is what was left when the attempts were used up", async () => {
    let asked = 0;
    const { items, attempts } = await shrink(
      numbers(16),
      async (some) => {
        asked++;
        return some.includes(3);
      },
      2,
    );
    expect({ asked, attempts, items }).toEqual({ asked: 2, attempts: 2, items: numbers(8) });
  });

  test("is the whole list when nothing else fails", async () => {
    expect((await shrink(numbers(5), async () => false, 100)).items).toEqual(numbers(5));
  });
});
