/** The worker's client for grants at the gateway: registers one or several, and revokes them. */
import {
  type Deadlines,
  type Job,
  type MaskablePayload,
  type PrefetchRequest,
  prefetchedGrantsSchema,
  type RegisteredGrant,
  registeredGrantSchema,
  type TraceContext,
} from "@svc/contracts";
import { type Config, errorText, type InnerClient, type InnerRequest, type Log } from "@svc/service-kit";
import type { SessionRun } from "@svc/session-store";
import { claimsOf, sharedClaimsOf } from "./claims.ts";
import { type Ended, RevocationBatch } from "./revocation-batch.ts";

export interface RegisterOptions {
  signal?: AbortSignal;
  /** The session that the run continues. */
  run?: SessionRun | undefined;
  trace?: TraceContext | undefined;
}

export class GrantClient {
  readonly #gateway: InnerClient;
  readonly #config: Config;
  readonly #log: Log;
  readonly #ended = new RevocationBatch((ended) => this.#end(ended));

  constructor(gateway: InnerClient, config: Config, log: Log) {
    this.#gateway = gateway;
    this.#config = config;
    this.#log = log;
  }

  async register(
    job: Job,
    deadlines: Deadlines,
    { signal, run, trace }: RegisterOptions = {},
  ): Promise<RegisteredGrant> {
    const payload: MaskablePayload = {
      session_id: job.session_id,
      output_session_id: job.session_id,
      files: job.files.map(({ name, id, storage_session_id }) => ({ name, id, storage_session_id })),
    };
    const claims = claimsOf(job, deadlines, this.#config, run);
    const request = { payload, claims, callback: job.ptc?.callback };
    return registeredGrantSchema.parse(await this.#post("", request, job.request_id, { signal, trace }));
  }

  /** Grants for later runs of the job's owner. */
  async prefetch(job: Job, deadlines: Deadlines, runs: PrefetchRequest["runs"]): Promise<RegisteredGrant[]> {
    const claims = sharedClaimsOf(job, deadlines, this.#config);
    return prefetchedGrantsSchema.parse(await this.#post("/prefetch", { claims, runs }, job.request_id))
      .grants;
  }

  /** Records with the grant whether the state of the session could be restored. */
  async reportRestore(grantId: string, failed: boolean, requestId: string): Promise<void> {
    const outcome = failed ? { restored: false, session_state_restore_failed: true } : { restored: true };
    await this.#gateway.json<unknown>({
      method: "POST",
      path: `/internal/egress-grants/${grantId}/restore-result`,
      requestId,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(outcome),
      timeoutMs: this.#config.EGRESS_GATEWAY_REQUEST_TIMEOUT_MS,
    });
  }

  /** Revokes a grant in the background. When that fails, the grant expires by itself. */
  end(ended: Ended): void {
    this.#ended.add(ended);
  }

  /** Sends a registration together with the pending revocations. When it fails, they are pending again. */
  async #post(
    path: string,
    request: object,
    requestId: string,
    how: Pick<InnerRequest, "signal" | "trace"> = {},
  ): Promise<unknown> {
    const ended = this.#ended.take();
    try {
      return await this.#gateway.json<unknown>({
        method: "POST",
        path: `/internal/egress-grants${path}`,
        requestId,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...request, ends: endsOf(ended) }),
        timeoutMs: this.#config.EGRESS_GATEWAY_REQUEST_TIMEOUT_MS,
        ...how,
      });
    } catch (error) {
      for (const one of ended) this.#ended.add(one);
      throw error;
    }
  }

  async #end(ended: readonly Ended[]): Promise<void> {
    const [requestId] = ended.map((each) => each.requestId);
    try {
      const call = {
        method: "POST" as const,
        path: "/internal/egress-grants/ends",
        requestId,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ends: endsOf(ended) }),
        timeoutMs: this.#config.EGRESS_GATEWAY_REVOKE_TIMEOUT_MS,
      };
      await this.#gateway.whole(call, async ({ statusCode, body }) => {
        await body.dump();
        if (statusCode >= 300) throw new Error(`the gateway answered ${statusCode}`);
      });
    } catch (error) {
      this.#log.warn({ err: errorText(error), request_id: requestId }, "revoking grants failed");
    }
  }

  /** Sends the pending revocations. */
  async close(): Promise<void> {
    await this.#ended.flush();
  }
}

const endsOf = (ended: readonly Ended[]) => ended.map(({ grant_id, reason }) => ({ grant_id, reason }));
