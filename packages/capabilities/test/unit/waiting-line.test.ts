import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { WaitingLine } from "../../src/ledger/waiting-line.ts";

const refused = { code: "ledger_conflict", status: 503 };

describe("a waiting line", () => {
  it("never lets more in than there is room for, and lets everybody in", async () => {
    const line = new WaitingLine({ inside: 3, waiting: 100, waitMs: 5000 });
    let [inside, most, done] = [0, 0, 0];
    const work = async () => {
      inside++;
      most = Math.max(most, inside);
      await sleep(1);
      inside--;
      done++;
    };
    await Promise.all(Array.from({ length: 50 }, () => line.run(work)));
    expect({ inside, most, done }).toEqual({ inside: 0, most: 3, done: 50 });
  });

  it("keeps the order of those who wait, also when work fails", async () => {
    const line = new WaitingLine({ inside: 1, waiting: 10, waitMs: 5000 });
    const order: number[] = [];
    const tasks = [0, 1, 2, 3].map((at) =>
      line.run(async () => {
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
    const line = new WaitingLine({ inside: 1, waiting: 1, waitMs: 30 });
    let end = (): void => {};
    const first = line.run(() => new Promise<void>((resolve) => (end = resolve)));
    const second = line.run(async () => "never");
    await expect(line.run(async () => "never")).rejects.toMatchObject(refused);
    await expect(second).rejects.toMatchObject(refused);
    end();
    await first;
    expect(await line.run(async () => "free")).toBe("free");
  });
});
