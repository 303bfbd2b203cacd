import { OpenDownloads } from "@svc/api/limits/open-downloads";
import { afterEach, expect, it, vi } from "vitest";

afterEach(() => vi.useRealTimers());

it("bounds the downloads of all callers together, and lets the next one in when one has closed", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  const downloads = new OpenDownloads();
  const never = new Promise<void>(() => {});
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  await downloads.enter("first", closed);
  for (let at = 1; at < 192; at++) await downloads.enter(`caller ${at % 12}`, never);
  const next = downloads.enter("next", never);
  const late = downloads.enter("late", never);
  close();
  await next;
  const refused = expect(late).rejects.toMatchObject({ code: "storage_unavailable" });
  await vi.advanceTimersByTimeAsync(30_000);
  await refused;
});
