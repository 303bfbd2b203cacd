import { newSecret } from "@svc/test-kit/credentials/secrets";
import { thrown } from "@svc/test-kit/thrown";
import { describe, expect, it } from "vitest";
import { ConfigError, ineffectiveVariables, loadConfig } from "../../src/config/load.ts";
import type { Component } from "../../src/config/types.ts";

const COMPLETE = {
  SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
  SANDBOX_FORWARD_TARGET: "gateway:3190",
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: "public",
};

const problemsOf = (component: Component, env: Record<string, string>): readonly string[] =>
  thrown(ConfigError, () => loadConfig(component, { ...COMPLETE, ...env }))?.problems ?? [];

describe("settings of microVMs", () => {
  it("a runner does not start where microVMs are asked for, and programs never run without the kernel that was wanted", () => {
    expect(problemsOf("runner", { KVM_ENABLED: "true" })).toEqual([
      "KVM_ENABLED asks for microVMs, which a runner does not make: start the launcher in its place",
    ]);
    expect(problemsOf("runner", { KVM_ENABLED: "false" })).toEqual([]);
  });

  it("the launcher and the other components start with the same file of variables", () => {
    for (const component of ["launcher", "api", "file-server"] as const)
      expect(problemsOf(component, { KVM_ENABLED: "true", LAUNCHER_RAM_MIB: "1024" }), component).toEqual([]);
  });

  it("the launcher refuses a bound of memory that no microVM fits into", () => {
    expect(problemsOf("launcher", { LAUNCHER_MEMORY_MIB: "2047" })).toEqual([
      "LAUNCHER_MEMORY_MIB must be at least LAUNCHER_RAM_MIB, 2048: otherwise no microVM fits",
    ]);
    expect(problemsOf("launcher", { LAUNCHER_MEMORY_MIB: "2048" })).toEqual([]);
  });

  it("the launcher refuses file systems that are larger than a microVM", () => {
    const sizes = { SANDBOX_WORKSPACE_MAX_BYTES: "1025m", SANDBOX_TMP_MAX_BYTES: "1g" };
    expect(problemsOf("launcher", { LAUNCHER_RAM_MIB: "1024", ...sizes })).toEqual([
      "SANDBOX_WORKSPACE_MAX_BYTES must be at most 1073741824 bytes, what a microVM has by LAUNCHER_RAM_MIB=1024",
    ]);
  });

  it.each([
    ["SANDBOX_WORKSPACE_MAX_BYTES", "65535", "must be between 65536 and 1099511627776"],
    ["SANDBOX_TMP_MAX_BYTES", "1025g", "must be between 65536 and 1099511627776"],
    ["KVM_ENABLED", "yes", "must be true or false"],
    ["LAUNCHER_ACCEL", "hvf", "must be one of auto, kvm, tcg"],
    ["LAUNCHER_RAM_MIB", "511", "must be between 512 and 1048576"],
    ["LAUNCHER_VCPUS", "0", "must be between 1 and 256"],
    ["LAUNCHER_LOG_LEVEL", "6", "must be between 0 and 5"],
    ["LAUNCHER_POOL_SIZE", "-1", "must be between 0 and 512"],
    ["LAUNCHER_RUNS_PER_VM", "0", "must be between 1 and 1000000"],
    ["LAUNCHER_VM_MAX_AGE_SECONDS", "1h", "must be a whole number of seconds"],
    // Node's timers end at once beyond that.
    ["LAUNCHER_VM_MAX_AGE_SECONDS", "2147484", "must be between 1 and 2147483"],
  ])("refuses %s=%s", (name, value, problem) => {
    expect(problemsOf("launcher", { [name]: value })).toEqual([`${name} ${problem}, not "${value}"`]);
  });
});

describe("variables without effect", () => {
  const set = {
    LAUNCHER_VCPUS: "4",
    SANDBOX_WORKSPACE_ROOT: "/x",
    SANDBOX_WARM_POOL: "1",
    LAUNCHER_ACCEL: "",
  };

  it("are those of features that this version lacks, and those of microVMs where there are none", () => {
    for (const off of ["", "false", "nonsense"])
      expect(ineffectiveVariables({ ...set, KVM_ENABLED: off })).toEqual([
        "SANDBOX_WORKSPACE_ROOT",
        "LAUNCHER_VCPUS",
      ]);
  });

  it("those of microVMs have an effect where there are some", () => {
    expect(ineffectiveVariables({ ...set, KVM_ENABLED: "on" })).toEqual(["SANDBOX_WORKSPACE_ROOT"]);
  });
});
