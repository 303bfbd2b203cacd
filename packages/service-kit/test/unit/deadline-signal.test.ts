import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DeadlineSignal } from "../../src/deadline-signal.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("a signal with a deadline", () => {
  it("is aborted when its time is over, and says so", () => {
    const work = new DeadlineSignal(new AbortController().signal, 1000);
    vi.advanceTimersByTime(999);
    expect([work.signal.aborted, work.isLate]).toEqual([false, false]);
    vi.advanceTimersByTime(1);
    expect([work.signal.aborted, work.isLate]).toEqual([true, true]);
  });

  it("is aborted by its caller's, for the same reason, and is not late then", () => {
    const caller = new AbortController();
    const work = new DeadlineSignal(caller.signal, 1000);
    caller.abort("left");
    vi.advanceTimersByTime(2000);
    expect([work.signal.reason, work.isLate]).toEqual(["left", false]);
    expect(new DeadlineSignal(caller.signal, 1000).signal.reason).toBe("left");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("has its whole time again after a restart", () => {
    const work = new DeadlineSignal(new AbortController().signal, 1000);
    vi.advanceTimersByTime(900);
    work.restart();
    vi.advanceTimersByTime(999);
    expect([work.signal.aborted, work.isLate]).toEqual([false, false]);
    vi.advanceTimersByTime(1);
    expect([work.signal.aborted, work.isLate]).toEqual([true, true]);
  });

  it("is aborted by nothing after its end", () => {
    const caller = new AbortController();
    const work = new DeadlineSignal(caller.signal, 1000);
    work.end();
    caller.abort("left");
    vi.advanceTimersByTime(2000);
    expect([work.signal.aborted, work.isLate, vi.getTimerCount()]).toEqual([false, false, 0]);
  });
});
