/** The configured limits of file names that callers choose. Pure. */
import type { NameLimits } from "@svc/contracts";
import type { Config } from "./variables.ts";

export function nameLimits(config: Config): NameLimits {
  return { maxLength: config.SANDBOX_MAX_PATH_LENGTH, maxDepth: config.SANDBOX_MAX_NESTING_DEPTH };
}
