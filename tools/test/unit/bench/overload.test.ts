import type { Seen } from "@svc/tools/bench/overload/caller";
import { type OverloadResult, offered, openLoop } from "@svc/tools/bench/overload/run";
import { overloadTables } from "@svc/tools/bench/overload/tables";
import { summarize } from "@svc/tools/bench/statistics";
import { asText } from "@svc/tools/bench/table";
import { describe, expect, it } from "vitest";

const answer = (status: number, ms: number, error?: string, retryAfter?: number): Seen => ({
  ...{ status, ms, error, retryAfter },
});
const SEEN = [
  answer(200, 100),
  answer(200, 300),
  answer(429, 10, "rate_limited", 1),
  answer(429, 30, "rate_limited", 0),
  answer(503, 20, "queue_saturated"),
];
const FLOOD = offered(SEEN, { sent: 5, seconds: 2, admittedPerSecond: 1 });

describe("a flood", () => {
  it("ends at once with the error of a request that fails, and with that alone", async () => {
    let runs = 0;
    const run = async () => {
      if (++runs > 2) throw new Error(`unexpected result: ${runs}`);
      return answer(200, 1);
    };
    const began = performance.now();
    await expect(openLoop({ run }, 1000, 60_000)).rejects.toThrow("unexpected result: 3");
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it("tells what it met", async () => {
    const met = await openLoop({ run: async () => answer(200, 1) }, 1000, 50);
    expect(met.admitted).toBe(met.sent);
    expect(met.sent).toBeGreaterThan(0);
  });
});

describe("what a flood met", () => {
  it("is counted by status and code, and a refusal without a time to come again is told", () => {
    expect(FLOOD).toMatchObject({
      ...{ sent: 5, admitted: 2, refused: 3, withoutRetryAfter: 2 },
      refusals: { "429 rate_limited": 2, "503 queue_saturated": 1 },
      refusalMs: { n: 3, p50: 20, max: 30, samples: [] },
      admittedMs: { n: 2, max: 300 },
    });
  });

  it("stands in the tables beside what the other caller and the copy met", () => {
    const result = {
      flood: FLOOD,
      quiet: summarize([10, 20]),
      beside: summarize([30, 50]),
      after: summarize([20]),
      bestPerSecond: 3,
      besideBarePerSecond: 2,
      mib: { before: 100, first: 110, last: 111 },
      firstAfterMs: 12,
    } as OverloadResult;
    const text = overloadTables(result).map(asText).join("\n");
    expect(text).toMatch(/refused +3 +20\.0 +30\.0 +30\.0/);
    expect(text).toMatch(/beside the flood +2 +30\.0 +50\.0 +50\.0 +2\.50 x/);
    expect(text).toMatch(/afterwards +1 .* 1\.00 x/);
    expect(text).toContain("2 times 429 rate_limited, 1 times 503 queue_saturated; without Retry-After: 2");
    expect(text).toMatch(/runs per second, both principals +3 +2 +2 \(1\.00 x\)\n/);
    expect(text).toMatch(/memory, MiB +100 +110 to 111/);
  });
});
