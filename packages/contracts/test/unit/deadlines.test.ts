import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deadlinesFor } from "../../src/index.ts";

const defaults = {
  JOB_PRIME_ALLOWANCE_MS: 120_000,
  JOB_POSTPROCESS_ALLOWANCE_MS: 60_000,
  JOB_WAIT_GRACE_MS: 15_000,
  SANDBOX_COMPILE_TIMEOUT: 30_000,
};

describe("deadlinesFor", () => {
  it("gives the documented values for a run of a minute", () => {
    expect(deadlinesFor(60_000, defaults)).toEqual({
      run: 60_000,
      runner: 270_000,
      worker: 285_000,
      api: 300_000,
    });
  });

  it("ends every layer strictly after the one inside it", () => {
    const ms = fc.integer({ min: 1, max: 86_400_000 });
    const settings = fc.record({
      JOB_PRIME_ALLOWANCE_MS: ms,
      JOB_POSTPROCESS_ALLOWANCE_MS: ms,
      JOB_WAIT_GRACE_MS: ms,
      SANDBOX_COMPILE_TIMEOUT: ms,
    });
    fc.assert(
      fc.property(ms, settings, (limit, given) => {
        const { run, runner, worker, api } = deadlinesFor(limit, given);
        expect(run).toBe(limit);
        expect(runner).toBeGreaterThan(run);
        expect(worker).toBeGreaterThan(runner);
        expect(api).toBeGreaterThan(worker);
      }),
    );
  });
});
