import { OpenByCaller } from "@svc/api/limits/open-by-caller";
import { ServiceError } from "@svc/contracts";
import { describe, expect, it } from "vitest";

const refusal = () => new ServiceError("rate_limited");
const bounded = (length = 10, waitMs = 60_000) =>
  new OpenByCaller({ atOnce: 2, waiting: { length, waitMs, refusal } });
const never = new Promise<void>(() => {});

describe("what callers have open", () => {
  it("is of one caller two at once, the others in their order", async () => {
    const made = bounded();
    const read: number[] = [];
    const enter = async (at: number) => {
      const leave = await made.enter("a", never);
      read.push(at);
      return leave;
    };
    const leaves = [0, 1, 2, 3].map(enter);
    const first = await leaves[0];
    await leaves[1];
    expect(read).toEqual([0, 1]);
    first?.();
    const third = await leaves[2];
    expect(read).toEqual([0, 1, 2]);
    third?.();
    await leaves[3];
    expect(read).toEqual([0, 1, 2, 3]);
  });

  it("does of one caller not hold up another's", async () => {
    const made = bounded();
    await made.enter("a", never);
    await made.enter("a", never);
    expect(await made.enter("b", never)).toBeInstanceOf(Function);
  });

  it("makes room when their connection closes", async () => {
    const made = bounded();
    let close = () => {};
    await made.enter("a", new Promise<void>((resolve) => (close = resolve)));
    await made.enter("a", never);
    const next = made.enter("a", never);
    close();
    expect(await next).toBeInstanceOf(Function);
  });

  it("is refused when too many wait, or one waits too long", async () => {
    const crowded = bounded(1);
    for (let at = 0; at < 3; at++) crowded.enter("a", never).catch(() => {});
    await expect(crowded.enter("a", never)).rejects.toMatchObject({ code: "rate_limited" });
    const late = bounded(10, 1);
    await late.enter("a", never);
    await late.enter("a", never);
    await expect(late.enter("a", never)).rejects.toMatchObject({ code: "rate_limited" });
  });
});
