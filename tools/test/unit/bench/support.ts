/** Made-up results for the tests of what is shown of them. */
import type { Measured, Result } from "@svc/tools/bench/result";
import { type Summary, summarize } from "@svc/tools/bench/statistics";

/** So many samples around a value: the value itself is their median. */
export function around(value: number, n = 41): Summary {
  return summarize(Array.from({ length: n }, (_, index) => value * (0.9 + (0.2 * index) / (n - 1))));
}

export const CONDITIONS = {
  cpu: "A CPU",
  cores: 2,
  memoryGib: 24,
  kernel: "6.1",
  system: "Debian",
  node: "v24",
  runtimes: { python: "3.11.2" },
  commit: "abc",
  loadBefore: 0.1,
};

export const NOTHING: Measured = { bare: {}, bareCpuMs: {}, scenarios: {}, cpu: [], loads: [] };

export function resultOf(modes: Result["modes"]): Result {
  return {
    version: 4,
    kind: "bench",
    date: "2026-01-31T10:00:00.000Z",
    command: "./svc bench",
    seconds: 60,
    n: 10,
    conditions: CONDITIONS,
    settings: { warm: { PYTHON_CONCURRENCY: "8" } },
    modes,
  };
}
