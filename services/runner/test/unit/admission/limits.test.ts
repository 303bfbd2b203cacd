import { executeRequestSchema } from "@svc/contracts";
import { compileLimitsFor, limitsFor, overridesSchema } from "@svc/runner/admission/limits";
import { loadConfig } from "@svc/service-kit";
import { describe, expect, it } from "vitest";

const config = loadConfig("runner", {
  SANDBOX_FORWARD_TARGET: "gateway:3190",
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: "key",
});
const MIB = 2 ** 20;
const limits = (request: object, overrides: object = {}) =>
  limitsFor(
    config,
    overridesSchema.parse(overrides),
    executeRequestSchema.parse({ language: "python", files: [{ name: "a", content: "" }], ...request }),
  );

describe("compileLimitsFor", () => {
  const compile = (request: object, overrides: object = {}) =>
    compileLimitsFor(
      config,
      overridesSchema.parse(overrides),
      executeRequestSchema.parse({ language: "c", files: [{ name: "a", content: "" }], ...request }),
    );

  it.each([
    [{}, {}, { wallMs: 30_000, memoryBytes: 1024 * MIB }],
    [{ run_timeout: 5, run_memory_limit: 5 }, {}, { wallMs: 30_000, memoryBytes: 1024 * MIB }],
    [{ compile_timeout: 100 }, {}, { wallMs: 100 }],
    [{ compile_timeout: 90_000 }, {}, { wallMs: 30_000 }],
    [{}, { c: { compile_timeout: 90_000, compile_memory_limit: 5 } }, { wallMs: 30_000, memoryBytes: 5 }],
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
      run_memory_limit: 3,
      max_process_count: 4,
      max_open_files: 5,
      max_file_size: 6,
      output_max_size: 7,
    };
    expect(limits({}, { python: own })).toMatchObject({
      wallMs: 1,
      cpuMs: 2,
      memoryBytes: 3,
      processes: 4,
      openFiles: 5,
      fileBytes: 6,
      outputCap: 7,
    });
  });

  it("the entry * holds for every language that does not set the same limit", () => {
    const overrides = { "*": { run_cpu_time: 1000, max_open_files: 50 }, python: { run_cpu_time: 2000 } };
    expect(limits({}, overrides)).toMatchObject({ cpuMs: 2000, openFiles: 50 });
    expect(limits({ language: "bash" }, overrides)).toMatchObject({ cpuMs: 1000, openFiles: 50 });
  });

  it.each([
    { python: { run_timeout: 0 } },
    { pyhton: { run_timeout: 5 } },
    { py: { run_timeout: 5 } },
    { python: { runtimeout: 5 } },
    { python: 5 },
    { python: { run_timeout: "5" } },
  ])("the override %j is refused", (overrides) => {
    expect(overridesSchema.safeParse(overrides).success).toBe(false);
  });
});
