import { executeRequestSchema } from "@svc/contracts";
import { compileLimitsFor, limitsFor } from "@svc/runner/admission/limits";
import { loadConfig, VARIABLES } from "@svc/service-kit";
import { describe, expect, it } from "vitest";

const config = loadConfig("runner", {
  SANDBOX_FORWARD_TARGET: "gateway:3190",
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: "key",
});
const MIB = 2 ** 20;
const parsed = (overrides: object) => VARIABLES.SANDBOX_LIMIT_OVERRIDES.parse(JSON.stringify(overrides));
const limits = (request: object, overrides: object = {}) =>
  limitsFor(
    config,
    parsed(overrides),
    executeRequestSchema.parse({ language: "python", files: [{ name: "a", content: "" }], ...request }),
  );

describe("compileLimitsFor", () => {
  const compile = (request: object, overrides: object = {}) =>
    compileLimitsFor(
      config,
      parsed(overrides),
      executeRequestSchema.parse({ language: "c", files: [{ name: "a", content: "" }], ...request }),
    );

  it.each([
    [{}, {}, { wallMs: 30_000, memoryBytes: 1024 * MIB }],
    [{ run_timeout: 5, run_memory_limit: 5 }, {}, { wallMs: 30_000, memoryBytes: 1024 * MIB }],
    [{ compile_timeout: 100 }, {}, { wallMs: 100 }],
    [{ compile_timeout: 90_000 }, {}, { wallMs: 30_000 }],
    [
      {},
      { c: { compile_timeout: 90_000, compile_memory_limit: 50 * MIB } },
      { wallMs: 30_000, memoryBytes: 50 * MIB },
    ],
    [{ compile_timeout: 200 }, { c: { compile_timeout: 100 } }, { wallMs: 100 }],
    [{}, { cpp: { compile_timeout: 100 } }, { wallMs: 30_000 }],
    [{}, { "*": { compile_timeout: 100, run_cpu_time: 7 } }, { wallMs: 100, cpuMs: 0 }],
  ])("%j with %j is %j: of its own, and within the deadlines", (request, overrides, expected) => {
    expect(compile(request, overrides)).toMatchObject(expected);
  });
});

describe("limitsFor", () => {
  it("has the configured limits where the request names none", () => {
    expect(limits({})).toEqual({
      wallMs: 60_000,
      cpuMs: 0,
      memoryBytes: 512 * MIB,
      processes: 256,
      openFiles: 2048,
      fileBytes: 100 * MIB,
      outputCap: 65_536,
      outputKillFactor: 64,
    });
  });

  it.each([
    [{ run_timeout: 1 }, { wallMs: 1 }],
    [{ run_timeout: 300_000 }, { wallMs: 300_000 }],
    [{ run_timeout: 300_001 }, { wallMs: 300_000 }],
    [{ run_timeout: null }, { wallMs: 60_000 }],
    [{ run_memory_limit: 1 }, { memoryBytes: 1 }],
    [{ run_memory_limit: 1024 * MIB }, { memoryBytes: 512 * MIB }],
  ])("%j gives %j: a request lowers limits and never raises them", (request, expected) => {
    expect(limits(request)).toMatchObject(expected);
  });

  it("the operator's overrides hold for their language only, and bound the request too", () => {
    const overrides = { python: { run_timeout: 5000, run_memory_limit: 64 * MIB, max_process_count: 8 } };
    expect(limits({}, overrides)).toMatchObject({ wallMs: 5000, memoryBytes: 64 * MIB, processes: 8 });
    expect(limits({ run_timeout: 9000 }, overrides).wallMs).toBe(5000);
    expect(limits({ run_timeout: 4000 }, overrides).wallMs).toBe(4000);
    expect(limits({ language: "bash" }, overrides)).toMatchObject({ wallMs: 60_000, processes: 256 });
  });

  it("every limit can be set for a language", () => {
    const own = {
      run_timeout: 1,
      run_cpu_time: 2,
      run_memory_limit: 30 * MIB,
      max_process_count: 4,
      max_open_files: 50,
      max_file_size: 6,
      output_max_size: 7000,
    };
    expect(limits({}, { python: own })).toMatchObject({
      wallMs: 1,
      cpuMs: 2,
      memoryBytes: 30 * MIB,
      processes: 4,
      openFiles: 50,
      fileBytes: 6,
      outputCap: 7000,
    });
  });

  it("the entry * holds for every language that does not set the same limit", () => {
    const overrides = { "*": { run_cpu_time: 1000, max_open_files: 50 }, python: { run_cpu_time: 2000 } };
    expect(limits({}, overrides)).toMatchObject({ cpuMs: 2000, openFiles: 50 });
    expect(limits({ language: "bash" }, overrides)).toMatchObject({ cpuMs: 1000, openFiles: 50 });
  });

  it.each([
    [{ python: { run_timeout: 0 } }, "is wrong at python.run_timeout: must be at least 1"],
    [{ python: { run_timeout: 86_400_001 } }, "is wrong at python.run_timeout: must be at most 86400000"],
    [{ python: { run_cpu_time: 86_400_001 } }, "is wrong at python.run_cpu_time: must be at most 86400000"],
    [{ java: { compile_timeout: 86_400_001 } }, "is wrong at java.compile_timeout: must be at most 86400000"],
    [{ "*": { run_memory_limit: 512 } }, "is wrong at *.run_memory_limit: must be at least 16777216"],
    [{ "*": { run_memory_limit: 2 ** 43 } }, "is wrong at *.run_memory_limit: must be at most 4398046511104"],
    [
      { java: { compile_memory_limit: 1024 } },
      "is wrong at java.compile_memory_limit: must be at least 16777216",
    ],
    [{ bash: { max_process_count: 32_769 } }, "is wrong at bash.max_process_count: must be at most 32768"],
    [{ bash: { max_open_files: 8 } }, "is wrong at bash.max_open_files: must be at least 16"],
    [{ bash: { max_open_files: 2_000_000 } }, "is wrong at bash.max_open_files: must be at most 1048576"],
    [{ bash: { max_file_size: 2 ** 43 } }, "is wrong at bash.max_file_size: must be at most 4398046511104"],
    [{ bash: { output_max_size: 0 } }, "is wrong at bash.output_max_size: must be at least 1"],
    [{ bash: { output_max_size: 2 ** 27 } }, "is wrong at bash.output_max_size: must be at most 67108864"],
    [{ pyhton: { run_timeout: 5 } }, "is wrong: pyhton is not one of *, "],
    [{ py: { run_timeout: 5 } }, /^is wrong: py is not one of .*, python, /],
    [
      { python: { runtimeout: 5 } },
      "is wrong at python: runtimeout is not one of run_timeout, run_cpu_time, ",
    ],
    [{ python: 5 }, "is wrong at python: must be an object"],
    [{ python: { run_timeout: "5" } }, "is wrong at python.run_timeout: must be a number"],
    [{ python: { run_timeout: 5.5 } }, "is wrong at python.run_timeout: must be a whole number"],
  ])("the override %j is refused, with its place and what would be right", (overrides, why) => {
    expect(() => parsed(overrides)).toThrow(why);
  });
});
