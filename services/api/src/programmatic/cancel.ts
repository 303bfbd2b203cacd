/**
 * The transition to cancelled, by the label that a caller gave a program or because its client disconnected. The replica that makes the
 * current round aborts it; the round's job is cancelled even when that replica is gone. A paused program is removed from its runner.
 */
import { type Principal, ServiceError } from "@svc/contracts";
import { type Cancellations, type Config, type Redis, sendCancellation, storeCall } from "@svc/service-kit";
import { mapLimited } from "@svc/service-kit/map-limited";
import { MAX_FROM_TOP, recordLifeMs, roundAndPauseMs } from "./expiry.ts";
import { forgetLabel, inFirstRound, PROGRAM_CANCELLATIONS, programsOf } from "./labels.ts";
import type { RoundJobs } from "./round-jobs.ts";
import { nextState, type ProgramRecord } from "./state.ts";
import type { ProgramStore } from "./store.ts";
import type { ToolExchanges } from "./tool-exchanges.ts";

/** Batch size: a label may have any number of programs. */
const LOOKED_FOR_AT_ONCE = 500;
const CANCELLED_AT_ONCE = 8;
const FIRST_ATTEMPTS = Array.from({ length: MAX_FROM_TOP }, (_, at) => ({ round: 1, number: at + 1 }));

export interface CancelDeps {
  config: Config;
  redis: Redis;
  store: ProgramStore;
  cancellations: Cancellations;
  jobs: RoundJobs;
  exchanges: ToolExchanges;
}

/** Cancels one program; false when it had ended or expired. Before its first pause a program has no record. */
export async function cancelProgram(deps: CancelDeps, id: string, requestId: string): Promise<boolean> {
  const { store, redis, jobs, exchanges, config } = deps;
  // This is read before the record: a first round that pauses in between has a record by then.
  const [isFirst = false] = await inFirstRound(deps, [id]);
  // The mark lives longer than the round.
  await storeCall(() => sendCancellation(redis, PROGRAM_CANCELLATIONS, id, roundAndPauseMs(config)));
  for (;;) {
    const { snapshot: from, program } = await store.read(id);
    if (from === undefined) {
      if (isFirst) await Promise.all(FIRST_ATTEMPTS.map((first) => jobs.cancel(id, first)));
      return isFirst;
    }
    const { attempt, runner_url, ...record } = from.record;
    const status = nextState(record.status, "cancel") as ProgramRecord["status"];
    if (status === record.status) return false;
    // This comes before the transition, so that a cancellation that fails in between can be repeated as a whole.
    if (attempt !== undefined) await jobs.cancel(id, { round: record.round + 1, number: attempt.number });
    const to: ProgramRecord = { ...record, status, pending: [] };
    const change = { from, to, lifeMs: recordLifeMs(config) };
    if ((await store.transition(id, change).catch(ifNotExpired)) === undefined) continue;
    if (program !== undefined && runner_url !== undefined) jobs.discard(program, runner_url, requestId);
    exchanges.end(id, record.grant_id, requestId);
    return true;
  }
}

/** For a record that expired meanwhile: the loop reads it again and does not find it. */
function ifNotExpired(error: unknown): undefined {
  if (!(error instanceof ServiceError) || error.code !== "execution_expired") throw error;
}

/** Cancels all programs of the principal with this label. Returns how many it cancelled. */
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

/** The programs that may still have something to cancel. */
async function living(deps: CancelDeps, ids: readonly string[]): Promise<string[]> {
  // This is read first: a first round that pauses in between has a record by then.
  const isFirst = await inFirstRound(deps, ids);
  const isStored = await deps.store.areNotOver(ids);
  return ids.filter((_, at) => isFirst[at] || isStored[at]);
}
