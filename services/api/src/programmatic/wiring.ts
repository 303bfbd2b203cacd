/** Builds what the programmatic routes work with. */
import type { Config, HttpServer, Log, Redis, Registry, TlsIdentity } from "@svc/service-kit";
import type { ExecDeps } from "../exec/asked.ts";
import { Once } from "../once/once.ts";
import type { RunningPrograms } from "./cancel.ts";
import { AnswerRenewal, storedSecondsFor } from "./expiry.ts";
import { programmaticMetrics } from "./metrics.ts";
import type { ResumeDeps } from "./resume.ts";
import { RoundJobs } from "./round-jobs.ts";
import type { StartDeps } from "./start.ts";
import { ProgramStore } from "./store.ts";
import { ContinuationTokens } from "./token.ts";
import { ToolExchanges } from "./tool-exchanges.ts";

export interface Parts {
  config: Config;
  log: Log;
  redis: Redis;
  registry: Registry;
  running: RunningPrograms;
  tls?: TlsIdentity | undefined;
}

export type ProgrammaticDeps = StartDeps & ResumeDeps;

export function programmaticDeps(app: HttpServer, parts: Parts, exec: ExecDeps): ProgrammaticDeps {
  const { config, log, redis, registry, running, tls } = parts;
  const exchanges = new ToolExchanges(config, log, tls);
  app.addHook("onClose", () => exchanges.close());
  const metrics = programmaticMetrics(registry);
  const once = new Once(redis, {
    conflict: "continuation_conflict",
    storedSeconds: storedSecondsFor(config.TOOL_CALL_SESSION_EXPIRY),
    onContention: () => metrics.contention.inc(),
  });
  return {
    ...exec,
    config,
    log,
    redis,
    running,
    metrics,
    exchanges,
    once,
    renewal: new AnswerRenewal(once, config.TOOL_CALL_SESSION_EXPIRY),
    store: new ProgramStore(redis),
    tokens: new ContinuationTokens(config.SVC_CONTINUATION_SECRET, config.SVC_INTERNAL_SERVICE_TOKEN),
    jobs: new RoundJobs({ config, log, jobs: exec.jobs, exchanges, submitted: exec.submitted }),
  };
}
