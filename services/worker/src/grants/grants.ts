/**
 * The grants of rounds: registered before each round, or prefetched, and revoked after it. A run without inputs and tools may take a
 * prefetched grant of its owner. Such a grant has its own execution id and output session.
 */
import { type Deadlines, type GrantEnd, type Job, newId, type RegisteredGrant } from "@svc/contracts";
import {
  type Config,
  endFailed,
  errorText,
  type InnerClient,
  type Log,
  type StageMetrics,
  type Tracing,
} from "@svc/service-kit";
import type { SessionRun } from "@svc/session-store";
import { untilAborted } from "../until-aborted.ts";
import { furtherRound, hasOnlyAnOwner, lifeSeconds, ownerOf } from "./claims.ts";
import { GrantClient, type RegisterOptions } from "./client.ts";
import { type NextRoundGrant, NextRoundGrants } from "./next-round.ts";
import { GrantPrefetch, UNUSED_MS } from "./prefetch.ts";

/** A grant, and the job with the output session of that grant. */
export interface Granted {
  grant: RegisteredGrant;
  job: Job;
}

interface Prefetched {
  grant: RegisteredGrant;
  sessionId: string;
  /** Request id of the run after which the grant was prefetched. */
  requestId: string;
}

const EXPIRE_MS = 1000;
/** After a failure, nothing is prefetched for this long. */
const FAILED_MS = 5000;

export class Grants {
  readonly #client: GrantClient;
  readonly #config: Config;
  readonly #log: Log;
  readonly #stages: StageMetrics;
  readonly #ready: NextRoundGrants;
  readonly #prefetched: GrantPrefetch<Prefetched>;
  #noPrefetchUntil = 0;
  #expiring: NodeJS.Timeout | undefined;
  readonly #tracing: Tracing | undefined;
  #isClosed = false;

  constructor(gateway: InnerClient, config: Config, log: Log, stages: StageMetrics, tracing?: Tracing) {
    this.#stages = stages;
    this.#tracing = tracing;
    this.#client = new GrantClient(gateway, config, log);
    this.#config = config;
    this.#log = log;
    this.#ready = new NextRoundGrants((unused) => void this.#release(unused));
    this.#prefetched = new GrantPrefetch(({ grant, requestId }) =>
      this.revoke(grant.grant_id, "completed", requestId),
    );
  }

  /** The grant of a round: a prefetched one, or a new one. `run`: the session that the round continues. */
  async take(job: Job, deadlines: Deadlines, signal: AbortSignal, run?: SessionRun): Promise<Granted> {
    const beganMs = performance.now();
    const span = this.#tracing?.join("gateway.register", "client", job.trace);
    try {
      const granted = await this.#take(job, deadlines, { signal, run, trace: span?.context ?? job.trace });
      span?.end();
      return granted;
    } catch (error) {
      endFailed(span, error);
      throw error;
    } finally {
      this.#stages.observe("grant", (performance.now() - beganMs) / 1000);
    }
  }

  async #take(
    job: Job,
    deadlines: Deadlines,
    how: RegisterOptions & { signal: AbortSignal },
  ): Promise<Granted> {
    const { execution_id, resume } = job;
    const nowMs = performance.now();
    if (hasOnlyAnOwner(job)) {
      const prefetched = this.#prefetched.take(ownerOf(job), nowMs + deadlines.worker, nowMs);
      if (prefetched !== undefined)
        return { grant: prefetched.grant, job: { ...job, session_id: prefetched.sessionId } };
    }
    if (resume === undefined) {
      this.#ready.drop(execution_id);
      return { grant: await this.#client.register(job, deadlines, how), job };
    }
    const ready = await this.#requested(execution_id, nowMs + deadlines.worker, how.signal);
    return { grant: ready ?? (await this.#client.register(furtherRound(job), deadlines, how)), job };
  }

  /**
   * The grant that was requested when the program paused, if it is valid until `untilMs`.
   * When the signal aborts first, the grant is revoked once it arrives.
   */
  async #requested(
    executionId: string,
    untilMs: number,
    signal: AbortSignal,
  ): Promise<RegisteredGrant | undefined> {
    const requested = this.#ready.take(executionId, untilMs);
    if (requested === undefined) return undefined;
    try {
      return await untilAborted(requested.grant, signal);
    } catch (error) {
      void this.#release(requested);
      throw error;
    }
  }

  /** The program has paused: revokes its grant and requests the next round's, in the background. */
  prepare(job: Job, deadlines: Deadlines, ended: string): void {
    const nowMs = performance.now();
    const { execution_id, request_id: requestId } = job;
    this.revoke(ended, "completed", requestId);
    const grant = this.#client.register(furtherRound(job), deadlines).catch((error: Error) => {
      this.#log.warn(
        { err: errorText(error), request_id: requestId },
        "prefetching the grant of the next round failed",
      );
      return undefined;
    });
    this.#ready.put(execution_id, { grant, endsMs: nowMs + this.#lifeMs(deadlines), requestId }, nowMs);
  }

  /** After a successful run: prefetches grants in the background, if its owner had other runs just before. */
  async prepareNext(job: Job, deadlines: Deadlines): Promise<void> {
    const nowMs = performance.now();
    const lifeMs = this.#lifeMs(deadlines);
    if (this.#isClosed || nowMs < this.#noPrefetchUntil) return;
    if (!hasOnlyAnOwner(job) || lifeMs < deadlines.worker + UNUSED_MS) return;
    const owner = ownerOf(job);
    const count = this.#prefetched.begin(owner, nowMs);
    if (count === 0) return;
    this.#expiring ??= setInterval(() => this.#expire(), EXPIRE_MS);
    const made = await this.#prefetch(job, deadlines, count);
    this.#prefetched.made(owner, count, made, nowMs + lifeMs);
  }

  async #prefetch(job: Job, deadlines: Deadlines, count: number): Promise<Prefetched[]> {
    const { request_id: requestId } = job;
    const runs = Array.from({ length: count }, () => ({ exec_id: newId(), output_session_id: newId() }));
    try {
      const grants = await this.#client.prefetch(job, deadlines, runs);
      return grants.flatMap((grant, at) => {
        const sessionId = runs[at]?.output_session_id;
        return sessionId === undefined ? [] : [{ grant, sessionId, requestId }];
      });
    } catch (error) {
      this.#noPrefetchUntil = performance.now() + FAILED_MS;
      this.#log.warn({ err: errorText(error), request_id: requestId }, "prefetching grants failed");
      return [];
    }
  }

  #lifeMs(deadlines: Deadlines): number {
    return Math.min(lifeSeconds(deadlines), this.#config.EGRESS_GRANT_TTL_SECONDS) * 1000;
  }

  #expire(): void {
    this.#prefetched.expire(performance.now());
    if (this.#prefetched.isEmpty) this.#stopExpiring();
  }

  #stopExpiring(): void {
    clearInterval(this.#expiring);
    this.#expiring = undefined;
  }

  /** Drops all prefetched grants, because the store may have lost them. */
  forgetPrefetched(): void {
    this.#prefetched.clear();
  }

  /** Releases the next round's grant of a paused program that was discarded. */
  drop({ execution_id }: Job): void {
    this.#ready.drop(execution_id);
  }

  async #release({ grant: made, requestId }: NextRoundGrant): Promise<void> {
    const grant = await made;
    if (grant !== undefined) this.revoke(grant.grant_id, "completed", requestId);
  }

  /** In the background: records with the grant whether the state of its session could be restored, then revokes the grant. */
  revokeRestored(grant_id: string, failed: boolean, requestId: string): void {
    this.#client
      .reportRestore(grant_id, failed, requestId)
      .catch((err: Error) =>
        this.#log.warn({ err: errorText(err), request_id: requestId }, "reporting a restore failed"),
      )
      .finally(() => this.revoke(grant_id, "completed", requestId));
  }

  /** Revokes a grant in the background. */
  revoke(grant_id: string, reason: GrantEnd, requestId: string): void {
    this.#client.end({ grant_id, reason, requestId });
  }

  /** Revokes prefetched grants, and flushes revocations. Grants that are still requested expire by themselves. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopExpiring();
    this.#prefetched.clear();
    await this.#client.close();
  }
}
