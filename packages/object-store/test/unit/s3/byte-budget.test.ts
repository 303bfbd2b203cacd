import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteBudget } from "../../../src/s3/byte-budget.ts";

const TOTAL = 100;

test("never more than the total is held, everybody is served in order, failures give back what they held", async () => {
  const tasks = fc.array(
    fc.record({ bytes: fc.integer({ min: 0, max: 250 }), turns: fc.nat(5), fails: fc.boolean() }),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(tasks, async (list) => {
      const budget = new ByteBudget(TOTAL);
      let held = 0;
      const begun: number[] = [];
      const outcomes = await Promise.allSettled(
        list.map(({ bytes, turns, fails }, index) =>
          budget.run(bytes, async () => {
            begun.push(index);
            held += Math.min(bytes, TOTAL);
            expect(held).toBeLessThanOrEqual(TOTAL);
            for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
            held -= Math.min(bytes, TOTAL);
            if (fails) throw new Error("failed");
          }),
        ),
      );
      expect(begun).toEqual(list.map((_task, index) => index));
      expect(outcomes.map(({ status }) => status === "rejected")).toEqual(list.map(({ fails }) => fails));
      expect(held).toBe(0);
    }),
  );
});
