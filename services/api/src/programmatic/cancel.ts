/**
 * The transition to cancelled, by the label that callers gave a program or because its client left. Every replica hears of a
 * cancellation and aborts the rounds that it makes of that program; a paused program is removed from its runner. A message is lost with the
 * connection that it is for, but not its mark in Redis: that is looked for at each reconnect, and when a start has paused.
 */
import { type Principal, ServiceError } from "@svc/contracts";
import { type Config, type Redis, storeCall } from "@svc/service-kit";
import { mapLimited } from "@svc/service-kit/map-limited";
import { recordLifeMs, roundAndPauseMs } from "./expiry.ts";
import { cancelledKey, forgetLabel, inFirstRound, programsOf } from "./labels.ts";
import type { RoundJobs } from "./round-jobs.ts";
import { nextState, type ProgramRecord } from "./state.ts";
import type { ProgramStore } from "./store.ts";
import type { ToolExchanges } from "./tool-exchanges.ts";

const CHANNEL = "svc:ptc:cancelled";
/** A label may have any number of programs: so many are looked for in one step. */
const LOOKED_FOR_AT_ONCE = 500;
const CANCELLED_AT_ONCE = 8;

/** The programs whose round this replica makes, and the broadcast that cancels one on any replica. */
export class RunningPrograms {
  readonly #redis: Redis;
  readonly #running = new Map<string, Set<AbortController>>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async listen(subscriber: Redis): Promise<void> {
    subscriber.on("message", (channel: string, id: string) => {
      if (channel === CHANNEL) this.#abort(id);
    });
    await subscriber.subscribe(CHANNEL);
    // The second subscription changes nothing: its reply says that the first one is in place.
    subscriber.on("ready", () => {
      subscriber.subscribe(CHANNEL).then(
        () => this.look(this.#running.keys()),
        () => undefined,
      );
    });
  }

  /** Aborts the rounds of those of these programs that have a mark. Never rejects. */
  async look(programs: Iterable<string>): Promise<void> {
    const ids = [...programs];
    if (ids.length === 0) return;
    const marks = await this.#redis.mget(ids.map(cancelledKey)).catch(() => []);
    for (const [at, mark] of marks.entries()) if (mark !== null) this.#abort(ids[at] as string);
  }

  #abort(id: string): void {
    for (const controller of this.#running.get(id) ?? [])
      controller.abort(new ServiceError("execution_cancelled"));
  }

  /** Runs work of a program under a signal that its cancellation aborts. However work fails then, it was cancelled. */
  async during<T>(id: string, work: (cancelled: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const controllers = this.#running.get(id) ?? new Set();
    this.#running.set(id, controllers.add(controller));
    try {
      return await work(controller.signal);
    } catch (error) {
      controller.signal.throwIfAborted();
      throw error;
    } finally {
      controllers.delete(controller);
      if (controllers.size === 0) this.#running.delete(id);
    }
  }

  /** Aborts the program's round on every replica. The mark lives longer than the round. */
  async cancel(id: string, lifeMs: number): Promise<void> {
    const commands = this.#redis.multi().set(cancelledKey(id), "1", "PX", lifeMs).publish(CHANNEL, id);
    await storeCall(() => commands.exec());
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

/** Cancels one program; false when it had ended or expired. Before its first pause a program has no record. */
export async function cancelProgram(deps: CancelDeps, id: string, requestId: string): Promise<boolean> {
  const { store, running, jobs, exchanges, config } = deps;
  // Asked before the record is read: a first round that has just paused has one by then.
  const [isFirst = false] = await inFirstRound(deps, [id]);
  await running.cancel(id, roundAndPauseMs(config));
  for (;;) {
    const { snapshot: from, program } = await store.read(id);
    if (from === undefined) return isFirst;
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
  for (let count = 0; ; ) {
    const ids = await programsOf(deps, principal, label, LOOKED_FOR_AT_ONCE);
    if (ids.length === 0) return count;
    const cancelled = await mapLimited(await living(deps, ids), CANCELLED_AT_ONCE, (id) =>
      cancelProgram(deps, id, requestId),
    );
    count += cancelled.filter(Boolean).length;
    await forgetLabel(deps, principal, label, ids);
  }
}

/** Those of which there may be something to cancel. */
async function living(deps: CancelDeps, ids: readonly string[]): Promise<string[]> {
  // Asked first: a first round that has just paused has a record by then.
  const isFirst = await inFirstRound(deps, ids);
  const isStored = await deps.store.areNotOver(ids);
  return ids.filter((_, at) => isFirst[at] || isStored[at]);
}
