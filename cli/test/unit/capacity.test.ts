import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { capacityOf, fitted, memoryOfJails, processesOfJails, slotBytes } from "../../src/capacity.ts";
import type { Problem } from "../../src/problem.ts";
import { groupLimits } from "../../src/system/memory.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const interpreted = [{ language: "python" }, { language: "bash" }];
const compiled = [...interpreted, { language: "java", compile: {} }];

describe("the memory of all jails", () => {
  it.each([
    [64, 57.6],
    [24, 21.6],
    [8, 7],
    [4, 3],
    [2, 1.5],
  ])("of a machine with %d GiB is %d GiB", (total, jails) => {
    expect(memoryOfJails(total * GIB) / GIB).toBeCloseTo(jails, 5);
  });
});

describe("what a slot takes at worst", () => {
  it("is the memory of a run with all of its file systems", () => {
    expect(slotBytes({}, interpreted)).toBe((512 + 512 + 100 + 64) * MIB);
  });

  it("counts a compiler where there is one", () => {
    expect(slotBytes({}, compiled)).toBe((1024 + 512 + 100 + 64) * MIB);
  });

  it("follows every setting that it depends on", () => {
    const files = { SANDBOX_WORKSPACE_MAX_BYTES: "1mb", SANDBOX_TMP_MAX_BYTES: "2mb" };
    expect(slotBytes({ ...files, SANDBOX_RUN_MEMORY_LIMIT: "100mb" }, interpreted)).toBe(167 * MIB);
    expect(slotBytes({ ...files, SANDBOX_COMPILE_MEMORY_LIMIT: "2gb" }, compiled)).toBe((2048 + 67) * MIB);
    const own = { ...files, SANDBOX_LIMIT_OVERRIDES: `{"java":{"run_memory_limit":${4 * GIB}}}` };
    expect(slotBytes(own, compiled)).toBe(4 * GIB + 67 * MIB);
    expect(slotBytes(own, interpreted)).toBe((512 + 67) * MIB);
    const all = { ...files, SANDBOX_LIMIT_OVERRIDES: `{"*":{"run_memory_limit":${GIB}}}` };
    expect(slotBytes(all, interpreted)).toBe(GIB + 67 * MIB);
  });

  it("leaves a value that is not right to the component that names it", () => {
    expect(slotBytes({ SANDBOX_RUN_MEMORY_LIMIT: "much" }, interpreted)).toBe(slotBytes({}, interpreted));
  });
});

describe("slots", () => {
  const at = (gib: number, caller: Record<string, string> = {}, cores = 4) => {
    const { notice, jobs } = fitted(capacityOf({ cores, memoryBytes: gib * GIB }, caller, interpreted));
    return { notice, jobs };
  };
  const problemAt = (gib: number, caller: Record<string, string> = {}) => {
    try {
      at(gib, caller);
    } catch (error) {
      return error as Problem;
    }
    throw new Error("it fits");
  };

  it("are two for each processor where they fit, and nothing is said", () => {
    expect(at(24)).toEqual({ notice: undefined, jobs: 8 });
    expect(at(10.5)).toEqual({ notice: undefined, jobs: 8 });
  });

  it.each([
    [1, 4],
    [2, 4],
    [3, 6],
    [16, 32],
    [400, 512],
  ])("of a machine with %i processors and enough memory are %i", (cores, jobs) => {
    expect(at(2000, {}, cores).jobs).toBe(jobs);
  });

  it.each([
    [8, 6],
    [4, 2],
    [2, 1],
  ])("are fewer on a machine with %d GiB, and a line says why", (gib, jobs) => {
    const found = at(gib);
    expect(found.jobs).toBe(jobs);
    expect(found.notice).toContain(
      `SANDBOX_MAX_CONCURRENT_JOBS is ${jobs}, not 8: 8 programs at once may take 9.3 GiB`,
    );
  });

  it("that somebody asked for and that do not fit are refused, with numbers and the fix", () => {
    const problem = problemAt(8, { SANDBOX_MAX_CONCURRENT_JOBS: "7" });
    expect(problem.message).toBe(
      "7 programs at once may take 8.1 GiB (1.2 GiB each with its files), and jails get 7.0 GiB of 8.0 GiB",
    );
    expect(problem.advice).toContain("SANDBOX_MAX_CONCURRENT_JOBS=6");
    expect(at(8, { SANDBOX_MAX_CONCURRENT_JOBS: "6" }).jobs).toBe(6);
  });

  it("are refused when not even one fits, whether set or by default", () => {
    expect(problemAt(1).advice).toMatch(/^Lower SANDBOX_RUN_MEMORY_LIMIT/);
    expect(problemAt(8, { SANDBOX_WORKSPACE_MAX_BYTES: "9gb" }).message).toContain("(9.7 GiB each");
  });
});

describe("processes of all jails", () => {
  it("are as many as each slot may have, and a few for the slot itself", () => {
    expect(processesOfJails(10, {})).toBe(10 * (256 + 8));
    expect(processesOfJails(10, { SANDBOX_MAX_PROCESS_COUNT: "100" })).toBe(1080);
    const more = { SANDBOX_LIMIT_OVERRIDES: '{"java":{"max_process_count":500}}' };
    expect(processesOfJails(2, more)).toBe(1016);
  });

  it("are no more than the kernel takes", () => {
    expect(processesOfJails(1000, { SANDBOX_MAX_PROCESS_COUNT: "32768" })).toBe(4_194_304);
  });
});

describe("limits of control groups", () => {
  const inFolder = (test: (folder: string) => void) => {
    const folder = mkdtempSync(join(tmpdir(), "svc-groups-"));
    try {
      mkdirSync(join(folder, "a/b"), { recursive: true });
      test(folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  it("of version 2 are the own one and those above", () =>
    inFolder((path) => {
      writeFileSync(join(path, "a/memory.max"), "1000\n");
      writeFileSync(join(path, "a/b/memory.max"), "max\n");
      const mounts = [{ version: 2 as const, path, controllers: ["cpu", "memory"] }];
      expect(groupLimits(mounts, "0::/a/b\n")).toEqual([1000]);
    }));

  it("of version 1 are found in the group of memory; its largest number is none", () =>
    inFolder((path) => {
      writeFileSync(join(path, "memory.limit_in_bytes"), "9223372036854771712\n");
      writeFileSync(join(path, "a/memory.limit_in_bytes"), "2000\n");
      const mounts = [{ version: 1 as const, path, controllers: ["rw", "memory"] }];
      expect(groupLimits(mounts, "7:pids:/\n5:memory:/a\n")).toEqual([2000]);
      expect(groupLimits(mounts, "5:memory:/\n")).toEqual([]);
      expect(groupLimits([], "5:memory:/\n")).toEqual([]);
    }));
});
