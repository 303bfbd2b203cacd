import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { Semaphore } from "../../src/semaphore.ts";

const bounded = (units: number, length: number, waitMs: number) =>
  new Semaphore({ units, queue: { length, waitMs, refusal: () => new Error("refused") } });

describe("a semaphore with a bounded queue", () => {
  it("never lets more in than there is room for, and lets everybody in", async () => {
    const semaphore = bounded(3, 100, 5000);
    let [inside, most, done] = [0, 0, 0];
    const work = async () => {
      inside++;
      most = Math.max(most, inside);
      await sleep(1);
      inside--;
      done++;
    };
    await Promise.all(Array.from({ length: 50 }, () => semaphore.run(work)));
    expect({ inside, most, done }).toEqual({ inside: 0, most: 3, done: 50 });
  });

  it("keeps the order of those who wait, also when work fails", async () => {
    const semaphore = bounded(1, 10, 5000);
    const order: number[] = [];
    const tasks = [0, 1, 2, 3].map((at) =>
      semaphore.run(async () => {
        order.push(at);
        await sleep(1);
        if (at === 1) throw new Error("failed");
      }),
    );
    const results = await Promise.allSettled(tasks);
    expect(order).toEqual([0, 1, 2, 3]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  });

  it("refuses at once when it is full, and later who waits too long", async () => {
    const semaphore = bounded(1, 1, 30);
    let end = (): void => {};
    const first = semaphore.run(() => new Promise<void>((resolve) => (end = resolve)));
    const second = semaphore.run(async () => "never");
    await expect(semaphore.run(async () => "never")).rejects.toThrow("refused");
    await expect(second).rejects.toThrow("refused");
    end();
    await first;
    expect(await semaphore.run(async () => "free")).toBe("free");
  });

  it("gives the place in the queue of one that left to another", async () => {
    const semaphore = bounded(1, 1, 5000);
    const [first, leaving] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const running = semaphore.run(() => first.promise);
    const left = semaphore.run(async () => "never", 1, leaving.promise);
    leaving.resolve();
    await expect(left).rejects.toThrow("refused");
    const next = semaphore.run(async () => "next");
    first.resolve();
    expect(await next).toBe("next");
    await running;
  });
});

const TOTAL = 100;

test("weighted tasks never hold more than all units, start in order, and give back what they held when they fail", async () => {
  const tasks = fc.array(
    fc.record({ bytes: fc.integer({ min: 0, max: 250 }), turns: fc.nat(5), fails: fc.boolean() }),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(tasks, async (list) => {
      const semaphore = new Semaphore({ units: TOTAL });
      let held = 0;
      const begun: number[] = [];
      const outcomes = await Promise.allSettled(
        list.map(({ bytes, turns, fails }, index) =>
          semaphore.run(async () => {
            begun.push(index);
            held += Math.min(bytes, TOTAL);
            expect(held).toBeLessThanOrEqual(TOTAL);
            for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
            held -= Math.min(bytes, TOTAL);
            if (fails) throw new Error("failed");
          }, bytes),
        ),
      );
      expect(begun).toEqual(list.map((_task, index) => index));
      expect(outcomes.map(({ status }) => status === "rejected")).toEqual(list.map(({ fails }) => fails));
      expect(held).toBe(0);
    }),
  );
});

test("a heavy task that gives up waiting lets lighter ones behind it start", async () => {
  const semaphore = bounded(2, 10, 30);
  let end = (): void => {};
  const first = semaphore.run(() => new Promise<void>((resolve) => (end = resolve)));
  const heavy = semaphore.run(async () => "never", 2);
  const light = semaphore.run(async () => "started");
  await expect(heavy).rejects.toThrow("refused");
  expect(await light).toBe("started");
  end();
  await first;
});
