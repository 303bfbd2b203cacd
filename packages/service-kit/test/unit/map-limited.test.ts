import fc from "fast-check";
import { expect, test } from "vitest";
import { mapLimited } from "../../src/map-limited.ts";

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
};

test("results keep the order of the items, and never more operations run than the limit", async () => {
  const lists = fc.array(fc.nat(4), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(lists, fc.integer({ min: 1, max: 5 }), async (list, limit) => {
      let running = 0;
      const results = await mapLimited(list, limit, async (item) => {
        expect(++running).toBeLessThanOrEqual(limit);
        await turns(item);
        running--;
        return item * 2;
      });
      expect(results).toEqual(list.map((item) => item * 2));
    }),
  );
});

test("a failure starts nothing more, and is thrown after the operations under way have ended", async () => {
  const ended: number[] = [];
  const mapped = mapLimited([0, 1, 2, 3], 2, async (item) => {
    if (item === 0) throw new Error("failed");
    await turns(3);
    ended.push(item);
  });
  await expect(mapped).rejects.toThrow("failed");
  expect(ended).toEqual([1]);
});

test("the failure that came first is thrown, not what followed from it", async () => {
  const mapped = mapLimited([0, 1], 2, async (item) => {
    await turns(item === 0 ? 3 : 1);
    throw new Error(item === 1 ? "the cause" : "a consequence");
  });
  await expect(mapped).rejects.toThrow("the cause");
});
