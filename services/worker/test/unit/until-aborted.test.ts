import { getEventListeners } from "node:events";
import { untilAborted } from "@svc/worker/until-aborted";
import { describe, expect, it } from "vitest";

const never = () => new Promise<never>(() => undefined);

describe("work that is waited for until a signal", () => {
  it("is left when the signal aborts, and when it aborted before", async () => {
    const caller = new AbortController();
    const waiting = untilAborted(never(), caller.signal);
    caller.abort("left");
    await expect(waiting).rejects.toBe("left");
    await expect(untilAborted(never(), caller.signal)).rejects.toBe("left");
  });

  it("is given as it ends, and leaves nothing at the signal", async () => {
    const { signal } = new AbortController();
    expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
    await expect(untilAborted(Promise.reject("broken"), signal)).rejects.toBe("broken");
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
