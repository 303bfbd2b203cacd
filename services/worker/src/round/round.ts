/** What one round of a job needs, what it gives, and how it ended. */
import { type ExecuteResponse, type Job, type RoundResponse, ServiceError } from "@svc/contracts";
import type { Config, Log, Redis } from "@svc/service-kit";
import type { Grants } from "../grants/grants.ts";
import type { Runner } from "../runner/client.ts";
import type { TellEvent } from "../runner/event-lines.ts";
import type { SessionFields, Sessions } from "../sessions/sessions.ts";

export interface ProcessDeps {
  config: Config;
  log: Log;
  redis: Redis;
  grants: Grants;
  runner: Runner;
  /** Undefined: this worker keeps no sessions. */
  sessions: Sessions | undefined;
  /** Receives the program's output while it runs; undefined: the caller does not want that. */
  tell?: TellEvent | undefined;
}

/** The result of a round. `job` has the output session of the grant. */
export interface Round {
  job: Job;
  response: RoundResponse;
  /** The session fields of the answer. */
  ofSession?: SessionFields;
}

export const hasTools = ({ ptc, resume }: Pick<Job, "ptc" | "resume">) =>
  ptc !== undefined || resume !== undefined;

/** The answer to a run without tools, which cannot pause. */
export function endedRun(response: RoundResponse): ExecuteResponse {
  if ("paused" in response) throw new TypeError("a run without tools has paused");
  return response;
}

export function endOf(signal: AbortSignal): "failed" | "cancelled" | "timeout" {
  if (!signal.aborted) return "failed";
  return signal.reason instanceof ServiceError ? "cancelled" : "timeout";
}
