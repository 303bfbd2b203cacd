/** The rules of a start as they are configured. Pure. */
import type { RuntimeInfo } from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import type { ExecRules } from "./request.ts";

export function execRules(config: Config, runtimes: readonly RuntimeInfo[] | undefined): ExecRules {
  return {
    defaultRunMs: config.SANDBOX_RUN_TIMEOUT,
    maxRunMs: config.MAX_RUN_TIMEOUT,
    maxFiles: config.SANDBOX_MAX_INPUT_FILES,
    names: { maxLength: config.SANDBOX_MAX_PATH_LENGTH, maxDepth: config.SANDBOX_MAX_NESTING_DEPTH },
    runtimes,
  };
}
