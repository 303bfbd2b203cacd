/**
 * The grants of rounds: one is registered before each round, or was before it came, and ended after it. A run without inputs
 * and tools takes one that was made ahead for its owner; with such a grant go an execution id and an output session of its own.
 */
import { type Deadlines, type GrantEnd, type Job, newId, type RegisteredGrant } from "@svc/contracts";
import type { Config, InnerClient, Log } from "@svc/service-kit";
import { furtherRound, hasOnlyAnOwner, lifeSeconds, ownerOf } from "./claims.ts";
import { Registrar } from "./client.ts";
import { ReadyGrants } from "./next-round.ts";
import { GrantsAhead, UNUSED_MS } from "./prefetch.ts";

/** A grant, and the job as the grant knows it. */
export interface Granted {
  grant: RegisteredGrant;
  job: Job;
}

interface Ahead {
  grant: RegisteredGrant;
  sessionId: string;
  /** Of the run that was followed by its making. */
  requestId: string;
}

const EXPIRE_MS = 1000;
/** None is made ahead for so long when that has failed. */
const FAILED_MS = 5000;

export class Grants {
  readonly #registrar: Registrar;
  readonly #config: Config;
  readonly #log: Log;
  readonly #ready: ReadyGrants;
  readonly #ahead: GrantsAhead<Ahead>;
  #noneAheadUntil = 0;
  #expiring: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(gateway: InnerClient, config: Config, log: Log) {
    this.#registrar = new Registrar(gateway, config, log);
    this.#config = config;
    this.#log = log;
    this.#ready = new ReadyGrants(({ grant, requestId }) => void this.#giveUp(grant, requestId));
    this.#ahead = new GrantsAhead(({ grant, requestId }) =>
      this.revoke(grant.grant_id, "completed", requestId),
    );
  }

  /** The grant of a round: one that is ready for it, or a new one. */
  async take(job: Job, deadlines: Deadlines, signal: AbortSignal): Promise<Granted> {
    const { execution_id, resume } = job;
    const nowMs = performance.now();
    if (hasOnlyAnOwner(job)) {
      const ahead = this.#ahead.take(ownerOf(job), nowMs + deadlines.worker, nowMs);
      if (ahead !== undefined) return { grant: ahead.grant, job: { ...job, session_id: ahead.sessionId } };
    }
    if (resume === undefined) {
      this.#ready.drop(execution_id);
      return { grant: await this.#registrar.register(job, deadlines, signal), job };
    }
    const ready = await this.#ready.take(execution_id, nowMs + deadlines.worker)?.grant;
    return { grant: ready ?? (await this.#registrar.register(furtherRound(job), deadlines, signal)), job };
  }

  /** The program has paused: its grant is ended and that of its next round is made, in the background. */
  prepare(job: Job, deadlines: Deadlines, ended: string): void {
    const nowMs = performance.now();
    const { execution_id, request_id: requestId } = job;
    this.revoke(ended, "completed", requestId);
    const grant = this.#registrar.register(furtherRound(job), deadlines).catch((error: Error) => {
      this.#log.warn({ err: error.message, request_id: requestId }, "no grant could be made ready");
      return undefined;
    });
    this.#ready.put(execution_id, { grant, endsMs: nowMs + this.#lifeMs(deadlines), requestId }, nowMs);
  }

  /** A run has ended well: when its owner has had others just before, the grants of the next ones are made, in the background. */
  async prepareNext(job: Job, deadlines: Deadlines): Promise<void> {
    const nowMs = performance.now();
    const lifeMs = this.#lifeMs(deadlines);
    if (this.#isClosed || nowMs < this.#noneAheadUntil) return;
    if (!hasOnlyAnOwner(job) || lifeMs < deadlines.worker + UNUSED_MS) return;
    const owner = ownerOf(job);
    const count = this.#ahead.begin(owner, nowMs);
    if (count === 0) return;
    this.#expiring ??= setInterval(() => this.#expire(), EXPIRE_MS);
    const made = await this.#registerAhead(job, deadlines, count);
    this.#ahead.made(owner, count, made, nowMs + lifeMs);
  }

  async #registerAhead(job: Job, deadlines: Deadlines, count: number): Promise<Ahead[]> {
    const { request_id: requestId } = job;
    const runs = Array.from({ length: count }, () => ({ exec_id: newId(), output_session_id: newId() }));
    try {
      const grants = await this.#registrar.registerAhead(job, deadlines, runs);
      return grants.flatMap((grant, at) => {
        const sessionId = runs[at]?.output_session_id;
        return sessionId === undefined ? [] : [{ grant, sessionId, requestId }];
      });
    } catch (error) {
      this.#noneAheadUntil = performance.now() + FAILED_MS;
      this.#log.warn(
        { err: (error as Error).message, request_id: requestId },
        "no grants could be made ahead",
      );
      return [];
    }
  }

  #lifeMs(deadlines: Deadlines): number {
    return Math.min(lifeSeconds(deadlines), this.#config.EGRESS_GRANT_TTL_SECONDS) * 1000;
  }

  #expire(): void {
    this.#ahead.expire(performance.now());
    if (this.#ahead.isEmpty) this.#stopExpiring();
  }

  #stopExpiring(): void {
    clearInterval(this.#expiring);
    this.#expiring = undefined;
  }

  /** Those that are ready may have been lost with the store: none of them is used. */
  forgetAhead(): void {
    this.#ahead.clear();
  }

  /** A paused program is ended. */
  drop({ execution_id }: Job): void {
    this.#ready.drop(execution_id);
  }

  async #giveUp(made: Promise<RegisteredGrant | undefined>, requestId: string): Promise<void> {
    const grant = await made;
    if (grant !== undefined) this.revoke(grant.grant_id, "completed", requestId);
  }

  /** In the background. */
  revoke(grant_id: string, reason: GrantEnd, requestId: string): void {
    this.#registrar.end({ grant_id, reason, requestId });
  }

  /** Ends what was made ahead, and sends the ends that are left. What is still being made lapses by itself. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopExpiring();
    this.#ahead.clear();
    await this.#registrar.close();
  }
}
