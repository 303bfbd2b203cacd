import { outputLimits } from "@svc/runner/outputs/limits";
import { effectiveConfig } from "@svc/service-kit";
import { describe, expect, it } from "vitest";

const limitsOf = (env: Record<string, string>) => outputLimits(effectiveConfig(env));

describe("outputLimits", () => {
  it("are the documented ones where nothing is set", () => {
    expect(limitsOf({})).toEqual({
      maxFiles: 50,
      maxFileBytes: 10_000_000,
      maxTotalBytes: 500_000_000,
      names: { maxLength: 256, maxDepth: 10 },
    });
  });

  it.each([
    ["SANDBOX_MAX_OUTPUT_FILES", "EXECUTION_MANIFEST_MAX_OUTPUT_FILES", { maxFiles: 7 }],
    ["SANDBOX_MAX_FILE_SIZE", "EGRESS_GATEWAY_MAX_FILE_BYTES", { maxFileBytes: 7 }],
    ["SANDBOX_MAX_PATH_LENGTH", "EGRESS_GATEWAY_MAX_PATH_LENGTH", { names: { maxLength: 7, maxDepth: 10 } }],
    [
      "SANDBOX_MAX_NESTING_DEPTH",
      "EGRESS_GATEWAY_MAX_NESTING_DEPTH",
      { names: { maxLength: 256, maxDepth: 7 } },
    ],
  ])("%s and %s: the gateway is asked for nothing that it would refuse", (own, gateway, expected) => {
    expect(limitsOf({ [own]: "7", [gateway]: "60" })).toMatchObject(expected);
    expect(limitsOf({ [own]: "60", [gateway]: "7" })).toMatchObject(expected);
  });
});
