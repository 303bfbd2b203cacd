import { describe, expect, it } from "vitest";
import { prestartedPoolSize, warmPoolSize } from "../../src/warm-pool.ts";

const config = { SANDBOX_WARM_START: true, SANDBOX_WARM_POOL: 0, SANDBOX_MAX_CONCURRENT_JOBS: 8 };

describe("how many jails wait for a job", () => {
  it("is a few by itself, never more than may run at once", () => {
    expect(warmPoolSize(config)).toBe(4);
    expect(warmPoolSize({ ...config, SANDBOX_MAX_CONCURRENT_JOBS: 2 })).toBe(2);
  });

  it("is what the operator says, and none without warm starts", () => {
    expect(warmPoolSize({ ...config, SANDBOX_WARM_POOL: 16 })).toBe(16);
    expect(warmPoolSize({ ...config, SANDBOX_WARM_POOL: 16, SANDBOX_WARM_START: false })).toBe(0);
  });

  it("is the same for pre-started interpreters, but never less than those that always wait", () => {
    expect(prestartedPoolSize(4, [1, 0, 1])).toBe(4);
    expect(prestartedPoolSize(1, [1, 0, 1])).toBe(2);
    expect(prestartedPoolSize(1, [3, 0])).toBe(1);
    expect(prestartedPoolSize(0, [1, 0, 1])).toBe(0);
  });
});
