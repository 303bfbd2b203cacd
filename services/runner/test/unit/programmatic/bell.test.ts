import { describe, expect, it } from "vitest";
import { Bell } from "../../../src/programmatic/bell.ts";

describe("a bell", () => {
  it("wakes the one who waits, and whoever comes after a ring goes on at once, once", async () => {
    const bell = new Bell();
    const waiting = bell.wait();
    bell.ring();
    await waiting;
    bell.ring();
    bell.ring();
    await bell.wait();
    const began = performance.now();
    await bell.wait(20);
    expect(performance.now() - began).toBeGreaterThan(15);
  });
});
