import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RoundSignal } from "../../../src/programmatic/round-signal.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the signal of a round", () => {
  it("is aborted when its time is over, and says so", () => {
    const round = new RoundSignal(new AbortController().signal, 1000);
    vi.advanceTimersByTime(999);
    expect([round.signal.aborted, round.isLate]).toEqual([false, false]);
    vi.advanceTimersByTime(1);
    expect([round.signal.aborted, round.isLate]).toEqual([true, true]);
  });

  it("is aborted by its caller's, for the same reason, and is not late then", () => {
    const caller = new AbortController();
    const round = new RoundSignal(caller.signal, 1000);
    caller.abort("left");
    vi.advanceTimersByTime(2000);
    expect([round.signal.reason, round.isLate]).toEqual(["left", false]);
    expect(new RoundSignal(caller.signal, 1000).signal.reason).toBe("left");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is aborted by nothing after its end", () => {
    const caller = new AbortController();
    const round = new RoundSignal(caller.signal, 1000);
    round.end();
    caller.abort("left");
    vi.advanceTimersByTime(2000);
    expect([round.signal.aborted, round.isLate, vi.getTimerCount()]).toEqual([false, false, 0]);
  });
});
