import { Seat } from "@svc/api/limits/seats";
import { describe, expect, it } from "vitest";

function seat() {
  const seen = { given: 0 };
  const made = new Seat(1, () => void seen.given++);
  return { made, seen };
}

describe("a seat", () => {
  it("is given back once, when its request is over", () => {
    const { made, seen } = seat();
    expect(seen.given).toBe(0);
    made.release();
    expect(seen.given).toBe(1);
  });

  it("stays taken while its work goes on after the request", async () => {
    const { made, seen } = seat();
    let end = () => {};
    const work = made.during(() => new Promise<void>((resolve) => (end = resolve)));
    made.release();
    expect(seen.given).toBe(0);
    end();
    await work;
    expect(seen.given).toBe(1);
  });

  it("stays taken until its request is over, after the work has ended", async () => {
    const { made, seen } = seat();
    expect(await made.during(async () => 7)).toBe(7);
    expect(seen.given).toBe(0);
    made.release();
    expect(seen.given).toBe(1);
  });

  it("is given back when the work fails, with the failure", async () => {
    const { made, seen } = seat();
    const failed = made.during(async () => {
      throw new Error("broken");
    });
    made.release();
    await expect(failed).rejects.toThrow("broken");
    expect(seen.given).toBe(1);
  });
});
