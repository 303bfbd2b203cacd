/**
 * The limits of the files that a run returns, from the configuration. Nothing is tried that the gateway would refuse: a refused upload is a failed
 * one, and then the state of a session is not saved. Pure.
 */
import type { Config } from "@svc/service-kit";
import type { OutputLimits } from "./outputs.ts";

export function outputLimits(config: Config): OutputLimits {
  return {
    maxFiles: Math.min(config.SANDBOX_MAX_OUTPUT_FILES, config.EXECUTION_MANIFEST_MAX_OUTPUT_FILES),
    maxFileBytes: Math.min(config.SANDBOX_MAX_FILE_SIZE, config.EGRESS_GATEWAY_MAX_FILE_BYTES),
    maxTotalBytes: config.EXECUTION_MANIFEST_MAX_UPLOAD_BYTES,
    names: {
      maxLength: Math.min(config.SANDBOX_MAX_PATH_LENGTH, config.EGRESS_GATEWAY_MAX_PATH_LENGTH),
      maxDepth: Math.min(config.SANDBOX_MAX_NESTING_DEPTH, config.EGRESS_GATEWAY_MAX_NESTING_DEPTH),
    },
  };
}
