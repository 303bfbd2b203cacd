/**
 * What the API's line of a request says of its caller and of its run. The caller is a keyed hash: the same for all requests
 * of a user, across restarts, and nothing that names him. Routes note what they know of a run as soon as they know it.
 */
import { createHmac, createSecretKey, hkdfSync } from "node:crypto";
import { outcomeOfError, type Principal, type RunFacts } from "@svc/contracts";
import type { Config, EndedRequest, FastifyRequest } from "@svc/service-kit";

export interface NotedRun extends Partial<RunFacts> {
  language?: string;
  exec_id?: string;
  trace_id?: string | undefined;
  /** As the caller says. */
  user_id?: string;
  /** The answer is that of an earlier request with the same Idempotency-Key. */
  replayed?: true;
}

const runs = new WeakMap<FastifyRequest, NotedRun>();
/** Requests whose work goes on when the client leaves. */
const outliving = new WeakSet<FastifyRequest>();

/** Adds to what is known of the run of a request. */
export function noteRun(request: FastifyRequest, facts: NotedRun): void {
  const known = runs.get(request);
  if (known === undefined) runs.set(request, { ...facts });
  else Object.assign(known, facts);
}

const MAX_USER_CHARS = 128;

/** What the body of a start says of its user. For the log alone: nobody is known by it. */
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

/** Keyed by the secret that the API alone holds, where it has one. */
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
