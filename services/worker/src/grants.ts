/** The worker's side of egress grants: claims of a job, registration before each round, revocation after it. */
import {
  type Deadlines,
  type GrantClaims,
  type GrantEnd,
  type Job,
  type MaskablePayload,
  type RegisteredGrant,
  registeredGrantSchema,
} from "@svc/contracts";
import type { Config, InnerClient, Log } from "@svc/service-kit";
import { type Ended, EndedGrants } from "./ended-grants.ts";
import { ReadyGrants } from "./ready-grants.ts";

const GRANT_MARGIN_SECONDS = 60;

const byIds = (left: { sort: string }, right: { sort: string }) => (left.sort < right.sort ? -1 : 1);

const lifeSeconds = (deadlines: Deadlines) => Math.ceil(deadlines.worker / 1000) + GRANT_MARGIN_SECONDS;

/** A paused program has its inputs and its way to tools. */
const furtherRound = ({ ptc: _, ...job }: Job): Job => ({ ...job, files: [] });

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
    lifetime_seconds: lifeSeconds(deadlines),
  };
}

export class Grants {
  readonly #gateway: InnerClient;
  readonly #config: Config;
  readonly #log: Log;
  readonly #ready: ReadyGrants;
  readonly #ended = new EndedGrants((ended) => this.#end(ended));

  constructor(gateway: InnerClient, config: Config, log: Log) {
    this.#gateway = gateway;
    this.#config = config;
    this.#log = log;
    this.#ready = new ReadyGrants(({ grant, requestId }) => void this.#giveUp(grant, requestId));
  }

  /** The grant of a round: the one that is ready for a program that paused here, or a new one. */
  async take(job: Job, deadlines: Deadlines, signal: AbortSignal): Promise<RegisteredGrant> {
    const { execution_id, resume } = job;
    if (resume === undefined) {
      this.#ready.drop(execution_id);
      return this.#register(job, deadlines, signal);
    }
    const ready = this.#ready.take(execution_id, performance.now() + deadlines.worker);
    return (await ready?.grant) ?? this.#register(furtherRound(job), deadlines, signal);
  }

  /** The program has paused: its grant is ended and that of its next round is made, in the background. */
  prepare(job: Job, deadlines: Deadlines, ended: string): void {
    const nowMs = performance.now();
    const { execution_id, request_id: requestId } = job;
    this.revoke(ended, "completed", requestId);
    const grant = this.#register(furtherRound(job), deadlines).catch((error: Error) => {
      this.#log.warn({ err: error.message, request_id: requestId }, "no grant could be made ready");
      return undefined;
    });
    const life = Math.min(lifeSeconds(deadlines), this.#config.EGRESS_GRANT_TTL_SECONDS);
    this.#ready.put(execution_id, { grant, endsMs: nowMs + life * 1000, requestId }, nowMs);
  }

  /** A paused program is ended. */
  drop({ execution_id }: Job): void {
    this.#ready.drop(execution_id);
  }

  async #giveUp(made: Promise<RegisteredGrant | undefined>, requestId: string): Promise<void> {
    const grant = await made;
    if (grant !== undefined) this.revoke(grant.grant_id, "completed", requestId);
  }

  async #register(job: Job, deadlines: Deadlines, signal?: AbortSignal): Promise<RegisteredGrant> {
    const ended = this.#ended.take();
    try {
      return await this.#post(job, deadlines, ended, signal);
    } catch (error) {
      for (const one of ended) this.#ended.add(one);
      throw error;
    }
  }

  async #post(
    job: Job,
    deadlines: Deadlines,
    ended: readonly Ended[],
    signal: AbortSignal | undefined,
  ): Promise<RegisteredGrant> {
    const payload: MaskablePayload = {
      session_id: job.session_id,
      output_session_id: job.session_id,
      files: job.files.map(({ name, id, storage_session_id }) => ({ name, id, storage_session_id })),
    };
    const answer = await this.#gateway.json<unknown>({
      method: "POST",
      path: "/internal/egress-grants",
      requestId: job.request_id,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        payload,
        claims: claimsOf(job, deadlines, this.#config),
        ends: ended.map(({ grant_id, reason }) => ({ grant_id, reason })),
        callback: job.ptc?.callback,
      }),
      timeoutMs: this.#config.EGRESS_GATEWAY_REQUEST_TIMEOUT_MS,
      signal,
    });
    return registeredGrantSchema.parse(answer);
  }

  /** Revokes in the background: the answer does not wait for it, and the grant lapses by itself when it fails. */
  revoke(grant_id: string, reason: GrantEnd, requestId: string): void {
    this.#ended.add({ grant_id, reason, requestId });
  }

  async #end({ grant_id, reason, requestId }: Ended): Promise<void> {
    try {
      const response = await this.#gateway.send({
        method: "POST",
        path: `/internal/egress-grants/${grant_id}/revoke`,
        requestId,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ reason }),
        timeoutMs: this.#config.EGRESS_GATEWAY_REVOKE_TIMEOUT_MS,
      });
      await response.body.dump();
    } catch (error) {
      this.#log.warn({ err: (error as Error).message, request_id: requestId }, "a revocation failed");
    }
  }

  /** Sends the revocations that are left. */
  async close(): Promise<void> {
    await this.#ended.flush();
  }
}
