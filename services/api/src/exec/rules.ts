/** The rules for a start, partly from the configuration. Pure. */
import type { RuntimeInfo } from "@svc/contracts";
import { type Config, nameLimits } from "@svc/service-kit";
import type { ExecRules } from "./request.ts";

const MAX_START_BYTES = 8 * 2 ** 20;

/** The largest body of a start, in bytes. */
export function startLimit(config: Config): number {
  return Math.min(MAX_START_BYTES, config.SVC_HTTP_JSON_LIMIT);
}

export function execRules(config: Config, runtimes: readonly RuntimeInfo[] | undefined): ExecRules {
  return {
    defaultRunMs: config.SANDBOX_RUN_TIMEOUT,
    maxRunMs: config.MAX_RUN_TIMEOUT,
    maxFiles: config.SANDBOX_MAX_INPUT_FILES,
    names: nameLimits(config),
    keepsSessions: config.SVC_PERSIST_SESSIONS,
    runtimes,
  };
}
