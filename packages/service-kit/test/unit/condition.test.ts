import { describe, expect, it } from "vitest";
import { Condition } from "../../src/condition.ts";

describe("a condition", () => {
  it("wakes a waiter, and notifications before a wait end that wait once", async () => {
    const condition = new Condition();
    const waiting = condition.wait();
    condition.notify();
    expect(await waiting).toBe(true);
    condition.notify();
    condition.notify();
    expect(await condition.wait()).toBe(true);
    let isAwake = false;
    const next = condition.wait().then(() => {
      isAwake = true;
    });
    await Promise.resolve();
    expect(isAwake).toBe(false);
    condition.notify();
    await next;
  });

  it("ends a wait after its time, and when the signal aborts or has aborted", async () => {
    const condition = new Condition();
    expect(await condition.wait({ ms: 1 })).toBe(false);
    const stop = new AbortController();
    const waiting = condition.wait({ ms: 30_000, signal: stop.signal });
    stop.abort();
    expect(await waiting).toBe(false);
    expect(await condition.wait({ signal: stop.signal })).toBe(false);
  });
});
