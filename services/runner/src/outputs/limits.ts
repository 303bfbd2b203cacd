/** The limits of the files that a run returns, as they are configured. Pure. */
import type { Config } from "@svc/service-kit";
import type { OutputLimits } from "./outputs.ts";

export function outputLimits(config: Config): OutputLimits {
  return {
    maxFiles: config.SANDBOX_MAX_OUTPUT_FILES,
    maxFileBytes: Math.min(config.SANDBOX_MAX_FILE_SIZE, config.EGRESS_GATEWAY_MAX_FILE_BYTES),
    maxTotalBytes: config.EXECUTION_MANIFEST_MAX_UPLOAD_BYTES,
    names: { maxLength: config.SANDBOX_MAX_PATH_LENGTH, maxDepth: config.SANDBOX_MAX_NESTING_DEPTH },
  };
}
