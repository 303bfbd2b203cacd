/** The worker's calls to the gateway: grants are registered, one or several, and ended. */
import {
  type Deadlines,
  type Job,
  type MaskablePayload,
  type RegisterAhead,
  type RegisteredGrant,
  registeredAheadSchema,
  registeredGrantSchema,
} from "@svc/contracts";
import type { Config, InnerClient, Log } from "@svc/service-kit";
import { claimsOf, sharedClaimsOf } from "./claims.ts";
import { type Ended, EndedGrants } from "./revocation-batch.ts";

export class Registrar {
  readonly #gateway: InnerClient;
  readonly #config: Config;
  readonly #log: Log;
  readonly #ended = new EndedGrants((ended) => this.#end(ended));

  constructor(gateway: InnerClient, config: Config, log: Log) {
    this.#gateway = gateway;
    this.#config = config;
    this.#log = log;
  }

  async register(job: Job, deadlines: Deadlines, signal?: AbortSignal): Promise<RegisteredGrant> {
    const payload: MaskablePayload = {
      session_id: job.session_id,
      output_session_id: job.session_id,
      files: job.files.map(({ name, id, storage_session_id }) => ({ name, id, storage_session_id })),
    };
    const claims = claimsOf(job, deadlines, this.#config);
    const request = { payload, claims, callback: job.ptc?.callback };
    return registeredGrantSchema.parse(await this.#post("", request, job.request_id, signal));
  }

  /** Grants of further runs of the job's owner. */
  async registerAhead(
    job: Job,
    deadlines: Deadlines,
    runs: RegisterAhead["runs"],
  ): Promise<RegisteredGrant[]> {
    const claims = sharedClaimsOf(job, deadlines, this.#config);
    return registeredAheadSchema.parse(await this.#post("/ahead", { claims, runs }, job.request_id)).grants;
  }

  /** Ends a grant in the background: the answer does not wait for it, and the grant lapses by itself when it fails. */
  end(ended: Ended): void {
    this.#ended.add(ended);
  }

  /** A registration takes the ends along that wait. */
  async #post(path: string, request: object, requestId: string, signal?: AbortSignal): Promise<unknown> {
    const ended = this.#ended.take();
    try {
      return await this.#gateway.json<unknown>({
        method: "POST",
        path: `/internal/egress-grants${path}`,
        requestId,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...request, ends: endsOf(ended) }),
        timeoutMs: this.#config.EGRESS_GATEWAY_REQUEST_TIMEOUT_MS,
        signal,
      });
    } catch (error) {
      for (const one of ended) this.#ended.add(one);
      throw error;
    }
  }

  async #end(ended: readonly Ended[]): Promise<void> {
    const [requestId] = ended.map((each) => each.requestId);
    try {
      const response = await this.#gateway.send({
        method: "POST",
        path: "/internal/egress-grants/ends",
        requestId,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ends: endsOf(ended) }),
        timeoutMs: this.#config.EGRESS_GATEWAY_REVOKE_TIMEOUT_MS,
      });
      await response.body.dump();
      if (response.statusCode >= 300) throw new Error(`the gateway answered ${response.statusCode}`);
    } catch (error) {
      this.#log.warn({ err: (error as Error).message, request_id: requestId }, "grants could not be ended");
    }
  }

  /** Sends the ends that are left. */
  async close(): Promise<void> {
    await this.#ended.flush();
  }
}

const endsOf = (ended: readonly Ended[]) => ended.map(({ grant_id, reason }) => ({ grant_id, reason }));
