import { describe, expect, it } from "vitest";
import { retry } from "../../src/retry.ts";

function failing(times: number) {
  let calls = 0;
  const task = async () => {
    if (++calls <= times) throw new Error(`failure ${calls}`);
    return calls;
  };
  return { task, calls: () => calls };
}

describe("a retry", () => {
  it("repeats a task until it succeeds", async () => {
    const seen: number[] = [];
    const result = await retry(failing(2).task, (_error, failures) => {
      seen.push(failures);
      return 0;
    });
    expect(result).toBe(3);
    expect(seen).toEqual([1, 2]);
  });

  it("ends with the failure that the policy calls final", async () => {
    const { task, calls } = failing(5);
    const policy = (_error: unknown, failures: number) => (failures < 3 ? 1 : undefined);
    await expect(retry(task, policy)).rejects.toThrow("failure 3");
    expect(calls()).toBe(3);
  });

  it("ends when the signal aborts, in a pause or in an attempt", async () => {
    const stop = new AbortController();
    const { task, calls } = failing(5);
    const pausing = retry(
      task,
      () => {
        queueMicrotask(() => stop.abort());
        return 30_000;
      },
      stop.signal,
    );
    await expect(pausing).rejects.toThrow();
    expect(calls()).toBe(1);
    await expect(retry(task, () => 0, stop.signal)).rejects.toBe(stop.signal.reason);
    expect(calls()).toBe(2);
  });
});
