import { newSecret } from "@svc/test-kit/credentials/secrets";
import { describe, expect, it } from "vitest";
import { portOfTarget } from "../../src/config/forward-target.ts";
import { ConfigError, loadConfig } from "../../src/config/load.ts";

describe("a forward target", () => {
  it.each([
    ["gateway:3190", 3190],
    ["127.0.0.1:1", 1],
    ["[::1]:65535", 65_535],
    ["egress-gateway.svc.cluster.local:3190", 3190],
  ])("%s has a host and a port", (target, port) => {
    expect(portOfTarget(target)).toBe(port);
  });

  it.each([
    "gateway",
    "gateway:",
    ":3190",
    "gateway:0",
    "gateway:65536",
    "gateway:31 90",
    "http://gateway:3190",
    "gateway:3190/path",
    "user@gateway:3190",
    "a b:3190",
    "::1:3190",
    "999.1.1.1:3190",
    "not a target///",
  ])("%s is none", (target) => {
    expect(portOfTarget(target)).toBeUndefined();
  });
});

describe("a runner", () => {
  const problems = (env: Record<string, string>): readonly string[] => {
    try {
      loadConfig("runner", { SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: newSecret(), ...env });
      return [];
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    }
  };

  it("takes a target with the allowed port", () => {
    expect(problems({ SANDBOX_FORWARD_TARGET: "gateway:3190" })).toEqual([]);
    const other = { SANDBOX_FORWARD_TARGET: "gateway:13190", SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: "13190" };
    expect(problems(other)).toEqual([]);
  });

  it("does not start with a target of another port, or with one that is none", () => {
    expect(problems({ SANDBOX_FORWARD_TARGET: "gateway:3191" })).toEqual([
      expect.stringContaining("SANDBOX_ALLOWED_LOCAL_NETWORK_PORT=3190"),
    ]);
    expect(problems({ SANDBOX_FORWARD_TARGET: "not a target///" })).toContainEqual(
      expect.stringContaining("SANDBOX_FORWARD_TARGET must be host:port"),
    );
  });
});
