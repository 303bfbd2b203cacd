/** Puts the parts of programs with tools together. */
import type { Config, HttpServer, Log, Redis, Registry } from "@svc/service-kit";
import type { ExecDeps } from "../exec/route.ts";
import { Once } from "../once/once.ts";
import { Attempts } from "./attempts.ts";
import { Cancels } from "./cancels.ts";
import type { ProgrammaticDeps } from "./deps.ts";
import { EarlierAnswers, storedSecondsFor } from "./earlier-answers.ts";
import { Ends } from "./ends.ts";
import { programmaticMetrics } from "./metrics.ts";
import { Programs } from "./programs.ts";
import { Rounds } from "./rounds.ts";
import type { RunningPrograms } from "./running.ts";
import { ContinuationTokens } from "./token.ts";
import { ToolSessions } from "./tool-sessions.ts";

export interface Parts {
  config: Config;
  log: Log;
  redis: Redis;
  registry: Registry;
  running: RunningPrograms;
}

export function assembleProgrammatic(app: HttpServer, parts: Parts, exec: ExecDeps): ProgrammaticDeps {
  const { config, log, redis, registry, running } = parts;
  const sessions = new ToolSessions(config, log);
  app.addHook("onClose", () => sessions.close());
  const metrics = programmaticMetrics(registry);
  const programs = new Programs(redis);
  const tokens = new ContinuationTokens(config.SVC_CONTINUATION_SECRET, config.SVC_INTERNAL_SERVICE_TOKEN);
  const attempts = new Attempts({ config, log, jobs: exec.jobs, sessions, submitted: exec.submitted });
  const ends = new Ends({ config, programs, sessions, tokens, metrics });
  const once = new Once(redis, {
    conflict: "continuation_conflict",
    storedSeconds: storedSecondsFor(config.TOOL_CALL_SESSION_EXPIRY),
    onContention: () => metrics.contention.inc(),
  });
  return {
    ...exec,
    rounds: new Rounds({ config, log, programs, attempts, ends, metrics }),
    running,
    cancels: new Cancels({ redis, programs, running, attempts, sessions, ends }),
    once,
    earlierAnswers: new EarlierAnswers(once, config.TOOL_CALL_SESSION_EXPIRY),
    tokens,
    metrics,
  };
}
