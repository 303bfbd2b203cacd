/**
 * The fields for the caller and the run in the API's log line of a request. The caller is logged as a keyed hash, which is the same for
 * all requests of a user, across restarts, and does not reveal the user. Routes note each fact of a run as soon as they know it.
 */
import { createHmac, createSecretKey, hkdfSync } from "node:crypto";
import { outcomeOfError, type Principal, type RunFacts } from "@svc/contracts";
import type { Config, EndedRequest, FastifyRequest } from "@svc/service-kit";

export interface NotedRun extends Partial<RunFacts> {
  language?: string;
  exec_id?: string;
  trace_id?: string | undefined;
  /** The user id in the body, not verified. */
  user_id?: string;
  /** Set when the answer is a replay for the same Idempotency-Key. */
  replayed?: true;
}

const runs = new WeakMap<FastifyRequest, NotedRun>();
/** Requests whose work goes on when the client leaves. */
const outliving = new WeakSet<FastifyRequest>();

/** Adds facts about the run of a request. */
export function noteRun(request: FastifyRequest, facts: NotedRun): void {
  const known = runs.get(request);
  if (known === undefined) runs.set(request, { ...facts });
  else Object.assign(known, facts);
}

const MAX_USER_CHARS = 128;

/** Notes the user id in the body of a start. Only for the log: it does not identify the caller. */
export function noteUser(request: FastifyRequest): void {
  const { user_id } = Object(request.body) as { user_id?: unknown };
  if (typeof user_id !== "string" || user_id === "") return;
  noteRun(request, { user_id: user_id.slice(0, MAX_USER_CHARS).toWellFormed() });
}

export function noteOutliving(request: FastifyRequest): void {
  outliving.add(request);
}

export const RUNS_PROGRAMS: ReadonlySet<string | undefined> = new Set(["/v1/exec", "/v1/exec/programmatic"]);

export interface CallerOf {
  principalOf: (request: FastifyRequest) => Principal;
  isAuthenticated: (request: FastifyRequest) => boolean;
}

export function requestFields(config: Config, { principalOf, isAuthenticated }: CallerOf) {
  const tag = principalTags(config);
  return ({ request, left, error }: EndedRequest): object => {
    const run = runs.get(request);
    const fields = isAuthenticated(request) ? { principal: tag(principalOf(request)), ...run } : { ...run };
    if (!RUNS_PROGRAMS.has(request.routeOptions.url)) return fields;
    if (error !== undefined) return { ...fields, outcome: outcomeOfError(error) };
    const isCancelled = left && run?.outcome === undefined && !outliving.has(request);
    return isCancelled ? { ...fields, outcome: "cancelled" } : fields;
  };
}

const TAG_BYTES = 12;

/** Keyed with the secret that only the API has, if it is configured, else with the internal token. */
export function principalTags(
  config: Pick<Config, "SVC_CONTINUATION_SECRET" | "SVC_INTERNAL_SERVICE_TOKEN">,
): (principal: Principal) => string {
  const material = config.SVC_CONTINUATION_SECRET || config.SVC_INTERNAL_SERVICE_TOKEN;
  const key = createSecretKey(Buffer.from(hkdfSync("sha256", material, "svc-log:v1", "principal", 32)));
  return ({ tenantId, userId }) =>
    createHmac("sha256", key)
      .update(JSON.stringify([tenantId, userId]))
      .digest()
      .subarray(0, TAG_BYTES)
      .toString("base64url");
}
