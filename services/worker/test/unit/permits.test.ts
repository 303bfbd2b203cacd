import { describe, expect, it } from "vitest";
import { Permits } from "../../src/permits.ts";

describe("permits", () => {
  it("are as many as there are", () => {
    const permits = new Permits(2);
    expect([permits.tryTake(), permits.tryTake(), permits.tryTake()]).toEqual([true, true, false]);
    permits.giveBack();
    expect([permits.tryTake(), permits.tryTake()]).toEqual([true, false]);
  });

  it("are offered to those who want them, in their order", () => {
    const permits = new Permits(1);
    permits.tryTake();
    const got: string[] = [];
    let isFirstContent = false;
    permits.onFree(() => {
      if (!isFirstContent && permits.tryTake()) got.push("first");
      isFirstContent = true;
    });
    permits.onFree(() => {
      if (permits.tryTake()) got.push("second");
    });
    permits.giveBack();
    expect(got).toEqual(["first"]);
    permits.giveBack();
    expect(got).toEqual(["first", "second"]);
  });
});
