import { describe, expect, it, vi } from "vitest";
import { Permits } from "../../src/permits.ts";

describe("permits", () => {
  it("are as many as there are", () => {
    const permits = new Permits(2);
    expect([permits.tryTake(), permits.tryTake(), permits.tryTake()]).toEqual([true, true, false]);
    permits.giveBack();
    expect([permits.tryTake(), permits.tryTake()]).toEqual([true, false]);
  });

  it("are given to those who wait, in their order", async () => {
    const permits = new Permits(1);
    permits.tryTake();
    const got: string[] = [];
    const wait = (name: string) =>
      permits.takeWithin(10_000).then((has) => {
        if (has) got.push(name);
      });
    const waiting = [wait("first"), wait("second")];
    permits.giveBack();
    await waiting[0];
    expect(got).toEqual(["first"]);
    permits.giveBack();
    await waiting[1];
    expect(got).toEqual(["first", "second"]);
  });

  it("are not kept for those who do not wait any more", async () => {
    vi.useFakeTimers();
    try {
      const permits = new Permits(1);
      permits.tryTake();
      const late = permits.takeWithin(50);
      await vi.advanceTimersByTimeAsync(50);
      expect(await late).toBe(false);
      permits.giveBack();
      expect(permits.tryTake()).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it("are offered to who goes first before anybody else", async () => {
    const permits = new Permits(1);
    permits.tryTake();
    let wanted = true;
    permits.onFree = () => {
      if (wanted) permits.tryTake();
      wanted = false;
    };
    const held = permits.takeWithin(10_000);
    const free = vi.fn();
    void permits.whenFree().then(free);
    permits.giveBack();
    await Promise.resolve();
    expect(permits.tryTake()).toBe(false);
    expect(free).not.toHaveBeenCalled();
    permits.giveBack();
    expect(await held).toBe(true);
    expect(free).not.toHaveBeenCalled();
    permits.giveBack();
    await vi.waitFor(() => expect(free).toHaveBeenCalled());
    await permits.whenFree();
  });
});
