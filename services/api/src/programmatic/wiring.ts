/** Builds the dependencies of the programmatic routes. */
import type {
  Cancellations,
  Config,
  HttpServer,
  Log,
  Redis,
  Registry,
  StoredBytes,
  TlsIdentity,
} from "@svc/service-kit";
import type { ExecDeps } from "../exec/asked.ts";
import type { HoldingRound } from "../limits/seats.ts";
import { Once } from "../once/once.ts";
import { AnswerRenewal, storedSecondsFor } from "./expiry.ts";
import { programmaticMetrics } from "./metrics.ts";
import type { ResumeDeps } from "./resume.ts";
import { RoundJobs } from "./round-jobs.ts";
import type { StartDeps } from "./start.ts";
import { ProgramStore } from "./store.ts";
import { ContinuationTokens } from "./token.ts";
import { ToolExchanges } from "./tool-exchanges.ts";
import { WaitingResults } from "./waiting-results.ts";

export interface Parts {
  config: Config;
  log: Log;
  redis: Redis;
  registry: Registry;
  cancellations: Cancellations;
  tls?: TlsIdentity | undefined;
}

export type ProgrammaticDeps = StartDeps & ResumeDeps;

export function programmaticDeps(
  app: HttpServer,
  parts: Parts & { stored: StoredBytes; holdingRound: HoldingRound },
  exec: ExecDeps,
): ProgrammaticDeps {
  const { config, log, redis, registry, cancellations, stored, holdingRound, tls } = parts;
  const exchanges = new ToolExchanges(config, log, tls);
  app.addHook("onClose", () => exchanges.close());
  const metrics = programmaticMetrics(registry);
  const once = new Once(redis, {
    conflict: "continuation_conflict",
    storedSeconds: storedSecondsFor(config.TOOL_CALL_SESSION_EXPIRY),
  });
  return {
    ...exec,
    config,
    log,
    redis,
    cancellations,
    holdingRound,
    metrics,
    exchanges,
    once,
    // Each caller may repeat the largest resume once, and smaller ones more often.
    waiting: new WaitingResults(2 * config.PTC_MAX_HISTORY_BYTES),
    renewal: new AnswerRenewal(once, config.TOOL_CALL_SESSION_EXPIRY),
    store: new ProgramStore(redis, stored),
    tokens: new ContinuationTokens(config.SVC_CONTINUATION_SECRET, config.SVC_INTERNAL_SERVICE_TOKEN),
    jobs: new RoundJobs({ config, log, jobs: exec.jobs, exchanges, submitted: exec.submitted }),
  };
}
