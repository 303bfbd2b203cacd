/** The worker's side of egress grants: claims of a job, registration before the run, revocation after it. A pause keeps one. */
import {
  type Deadlines,
  type GrantClaims,
  type Job,
  type MaskablePayload,
  type RegisteredGrant,
  registeredGrantSchema,
} from "@svc/contracts";
import type { Config, InnerClient, Log } from "@svc/service-kit";
import { KeptGrants } from "./kept-grants.ts";

const GRANT_MARGIN_SECONDS = 60;

const byIds = (left: { sort: string }, right: { sort: string }) => (left.sort < right.sort ? -1 : 1);

export function claimsOf(job: Job, deadlines: Deadlines, config: Config): GrantClaims {
  const input_files = job.files
    .map(({ id, storage_session_id, name }) => ({
      sort: `${storage_session_id} ${id} ${name}`,
      claim: { id, session_id: storage_session_id, name },
    }))
    .sort(byIds)
    .map(({ claim }) => claim);
  return {
    exec_id: job.execution_id,
    tenant_id: job.principal.tenantId,
    user_id: job.principal.userId,
    session_key: job.output_namespace,
    input_files,
    read_sessions: [...new Set(input_files.map(({ session_id }) => session_id))].sort(),
    output_session_id: job.session_id,
    max_upload_bytes: config.EXECUTION_MANIFEST_MAX_UPLOAD_BYTES,
    max_output_files: config.EXECUTION_MANIFEST_MAX_OUTPUT_FILES,
    max_requests: config.EXECUTION_MANIFEST_MAX_REQUESTS,
    max_tool_calls: config.EXECUTION_MANIFEST_MAX_TOOL_CALLS,
    lifetime_seconds: Math.ceil(deadlines.worker / 1000) + GRANT_MARGIN_SECONDS,
  };
}

export class Grants {
  readonly #gateway: InnerClient;
  readonly #config: Config;
  readonly #log: Log;
  readonly #kept: KeptGrants;
  /** When grants of this process lapse, at the earliest. */
  readonly #ends = new WeakMap<RegisteredGrant, number>();

  constructor(gateway: InnerClient, config: Config, log: Log) {
    this.#gateway = gateway;
    this.#config = config;
    this.#log = log;
    this.#kept = new KeptGrants(({ grant, requestId }) =>
      this.revoke(grant.grant_id, "completed", requestId),
    );
  }

  /** For a round of a program that paused here: the grant that it had, while that lasts; else a new one. */
  async take(job: Job, deadlines: Deadlines, signal: AbortSignal): Promise<RegisteredGrant> {
    const { execution_id, resume } = job;
    if (resume === undefined) {
      this.#kept.drop(execution_id);
      return this.register(job, deadlines, signal);
    }
    const kept = this.#kept.take(execution_id, performance.now() + deadlines.worker);
    // A paused program has its inputs.
    return kept?.grant ?? this.register({ ...job, files: [] }, deadlines, signal);
  }

  /** The program has paused. */
  keep({ execution_id, request_id: requestId }: Job, grant: RegisteredGrant): void {
    const nowMs = performance.now();
    const endsMs = this.#ends.get(grant) ?? nowMs;
    this.#kept.keep(execution_id, { grant, endsMs, requestId }, nowMs);
  }

  /** A paused program is ended. */
  drop({ execution_id }: Job): void {
    this.#kept.drop(execution_id);
  }

  async register(job: Job, deadlines: Deadlines, signal: AbortSignal): Promise<RegisteredGrant> {
    const payload: MaskablePayload = {
      session_id: job.session_id,
      output_session_id: job.session_id,
      files: job.files.map(({ name, id, storage_session_id }) => ({ name, id, storage_session_id })),
    };
    const claims = claimsOf(job, deadlines, this.#config);
    const lifeSeconds = Math.min(claims.lifetime_seconds, this.#config.EGRESS_GRANT_TTL_SECONDS);
    const endsMs = performance.now() + lifeSeconds * 1000;
    const answer = await this.#gateway.json<unknown>({
      method: "POST",
      path: "/internal/egress-grants",
      requestId: job.request_id,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ payload, claims }),
      timeoutMs: this.#config.EGRESS_GATEWAY_REQUEST_TIMEOUT_MS,
      signal,
    });
    const grant = registeredGrantSchema.parse(answer);
    this.#ends.set(grant, endsMs);
    return grant;
  }

  /** Revokes in the background: the answer does not wait for it, and the grant lapses by itself when it fails. */
  revoke(grantId: string, reason: "completed" | "failed" | "cancelled" | "timeout", requestId: string): void {
    const call = this.#gateway.send({
      method: "POST",
      path: `/internal/egress-grants/${grantId}/revoke`,
      requestId,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ reason }),
      timeoutMs: this.#config.EGRESS_GATEWAY_REVOKE_TIMEOUT_MS,
    });
    call
      .then((response) => response.body.dump())
      .catch((error: Error) =>
        this.#log.warn({ err: error.message, request_id: requestId }, "a revocation failed"),
      );
  }
}
