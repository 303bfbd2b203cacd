import { OpenTransfers } from "@svc/api/limits/open-transfers";
import { afterEach, expect, it, vi } from "vitest";

afterEach(() => vi.useRealTimers());

it("bounds the transfers of all callers together, and lets the next one in when one has closed", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  const transfers = new OpenTransfers();
  const never = new Promise<void>(() => {});
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  await transfers.enter("first", closed);
  for (let at = 1; at < 192; at++) await transfers.enter(`caller ${at % 12}`, never);
  const next = transfers.enter("next", never);
  const late = transfers.enter("late", never);
  close();
  await next;
  const refused = expect(late).rejects.toMatchObject({ code: "storage_unavailable" });
  await vi.advanceTimersByTimeAsync(30_000);
  await refused;
});
