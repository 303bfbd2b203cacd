/**
 * The transition to cancelled, by the label that callers gave a program or because its client left. Every replica hears of a
 * cancellation and aborts the rounds that it makes of that program; a paused program is removed from its runner.
 */
import { createHash } from "node:crypto";
import { type Principal, ServiceError } from "@svc/contracts";
import { type Config, type Redis, storeCall } from "@svc/service-kit";
import { recordLifeMs } from "./expiry.ts";
import type { RoundJobs } from "./round-jobs.ts";
import { nextState, type ProgramRecord } from "./state.ts";
import type { ProgramStore } from "./store.ts";
import type { ToolExchanges } from "./tool-exchanges.ts";

const CHANNEL = "svc:ptc:cancelled";
/** Longer than a program can run and pause. */
const LABEL_SECONDS = 172_800;
const LABEL_HEADER = "x-librechat-code-request-id";
const MAX_LABEL_CHARS = 128;

/** The programs whose round this replica makes, and the broadcast that cancels one on any replica. */
export class RunningPrograms {
  readonly #redis: Redis;
  readonly #running = new Map<string, Set<AbortController>>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async listen(subscriber: Redis): Promise<void> {
    subscriber.on("message", (channel: string, id: string) => {
      if (channel !== CHANNEL) return;
      for (const controller of this.#running.get(id) ?? []) {
        controller.abort(new ServiceError("execution_cancelled"));
      }
    });
    await subscriber.subscribe(CHANNEL);
  }

  /** Runs work of a program under a signal that its cancellation aborts. */
  async during<T>(id: string, work: (cancelled: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const controllers = this.#running.get(id) ?? new Set();
    this.#running.set(id, controllers.add(controller));
    try {
      return await work(controller.signal);
    } finally {
      controllers.delete(controller);
      if (controllers.size === 0) this.#running.delete(id);
    }
  }

  /** Aborts the program's round on every replica. */
  async cancel(id: string): Promise<void> {
    await storeCall(() => this.#redis.publish(CHANNEL, id));
  }
}

export interface CancelDeps {
  config: Config;
  redis: Redis;
  store: ProgramStore;
  running: RunningPrograms;
  jobs: RoundJobs;
  exchanges: ToolExchanges;
}

/** Cancels one program; false when it had ended. Before its first pause a program has no record. */
export async function cancelProgram(deps: CancelDeps, id: string, requestId: string): Promise<boolean> {
  const { store, running, jobs, exchanges, config } = deps;
  await running.cancel(id);
  for (;;) {
    const { snapshot: from, program } = await store.read(id);
    if (from === undefined) return true;
    const { attempt: _a, runner_url, ...record } = from.record;
    const status = nextState(record.status, "cancel") as ProgramRecord["status"];
    if (status === record.status) return false;
    const to: ProgramRecord = { ...record, status, pending: [] };
    const change = { from, to, lifeMs: recordLifeMs(config) };
    if ((await store.transition(id, change).catch(ifNotExpired)) === undefined) continue;
    if (program !== undefined && runner_url !== undefined) jobs.discard(program, runner_url, requestId);
    exchanges.end(id, record.grant_id, requestId);
    return true;
  }
}

/** A record that is gone meanwhile is looked for once more, and not found. */
function ifNotExpired(error: unknown): undefined {
  if (!(error instanceof ServiceError) || error.code !== "execution_expired") throw error;
}

/** Cancels all programs of the principal with this label. Returns how many. */
export async function cancelByLabel(
  deps: CancelDeps,
  principal: Principal,
  label: string,
  requestId: string,
): Promise<number> {
  const key = labelKey(principal, label);
  const ids = await storeCall(() => deps.redis.smembers(key));
  const cancelled = await Promise.all(ids.map((id) => cancelProgram(deps, id, requestId)));
  if (ids.length > 0) await storeCall(() => deps.redis.srem(key, ...ids));
  return cancelled.filter(Boolean).length;
}

/** The label of a request: what its program may be cancelled by. */
export function labelOf(headers: Record<string, unknown>): string | undefined {
  const label = headers[LABEL_HEADER];
  return typeof label === "string" && label !== "" ? label.slice(0, MAX_LABEL_CHARS) : undefined;
}

export async function rememberLabel(
  redis: Redis,
  principal: Principal,
  label: string,
  id: string,
): Promise<void> {
  const key = labelKey(principal, label);
  await storeCall(() => redis.multi().sadd(key, id).expire(key, LABEL_SECONDS).exec());
}

/** For a program that ended; a label that is not removed expires. */
export function forgetLabel(redis: Redis, principal: Principal, label: string, id: string): void {
  redis.srem(labelKey(principal, label), id).catch(() => undefined);
}

function labelKey({ tenantId, userId }: Principal, label: string): string {
  const owned = JSON.stringify([tenantId, userId, label]);
  return `svc:ptc:label:${createHash("sha256").update(owned).digest("base64url")}`;
}
