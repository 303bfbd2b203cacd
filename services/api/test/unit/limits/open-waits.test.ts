import { MOST_WAITS, OpenWaits } from "@svc/api/limits/open-waits";
import { describe, expect, it } from "vitest";

const ALICE = { tenantId: "tenant", userId: "alice" };
const BOB = { tenantId: "tenant", userId: "bob" };

describe("open waits", () => {
  it("are so many of each caller at once, and those that ended or failed make room", async () => {
    const made = new OpenWaits();
    const open = Array.from({ length: MOST_WAITS }, () => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      return { ended: made.during(ALICE, () => promise), resolve, reject };
    });
    const again = () => made.during(ALICE, async () => "another");
    await expect(again()).rejects.toMatchObject({ code: "rate_limited", by: "open_waits" });
    expect(await made.during(BOB, async () => "of another caller")).toBe("of another caller");
    const [first, second] = open;
    first?.reject(new Error("the store is away"));
    await expect(first?.ended).rejects.toThrow("the store is away");
    expect(await again()).toBe("another");
    second?.resolve("ended");
    expect(await second?.ended).toBe("ended");
    expect(await again()).toBe("another");
  });
});
