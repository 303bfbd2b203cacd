/**
 * The runs of persistent sessions. The session's snapshot joins the inputs of a run before its grant is registered. What the run leaves
 * becomes the session's state by compare-and-swap. A store that refuses costs the state of this run, never its result. A store that does
 * not answer is waited for: it may still do what it was sent, and the answer says which state is current.
 */
import {
  type ExecResponse,
  type ExecuteResponse,
  type Job,
  type JobFile,
  newId,
  SNAPSHOT_NAME,
} from "@svc/contracts";
import { type Log, retry } from "@svc/service-kit";
import type { Left, SessionRun, SessionStore, Settled } from "@svc/session-store";
import type { PersistSession } from "../runner/client.ts";
import { untilAborted } from "../until-aborted.ts";
import type { SessionMetrics, StateOutcome } from "./metrics.ts";

/** Pauses before a call is repeated whose reply was lost. That is safe: a repeated swap tells what became of the first. */
const PAUSES_MS = [50, 200, 800];
/** Pause between calls while the store does not answer. */
const SILENT_PAUSE_MS = 200;

function repeated<T>(call: () => Promise<T>): Promise<T> {
  const pauses = PAUSES_MS.values();
  return retry(call, () => pauses.next().value);
}

/** The store has answered and has changed nothing. */
const isRefusal = (error: unknown) => error instanceof Error && error.name === "ReplyError";

/** What became of the state that a run left; `none`: the run left nothing, or the store refused. */
export type Outcome = Settled | "none";

export class Sessions {
  readonly #store: SessionStore;
  readonly #log: Log;
  readonly #metrics: SessionMetrics;

  constructor(store: SessionStore, log: Log, metrics: SessionMetrics) {
    this.#store = store;
    this.#log = log;
    this.#metrics = metrics;
  }

  /** Undefined: the store cannot be reached, and the run begins without a state. */
  async begin({
    session,
    output_namespace,
    language,
    session_id,
    request_id,
  }: Job): Promise<SessionRun | undefined> {
    const snapshotId = newId();
    try {
      return await repeated(() =>
        this.#store.begin({
          namespace: output_namespace,
          hint: session?.hint,
          language,
          executionSession: session_id,
          snapshotId,
        }),
      );
    } catch (err) {
      this.#log.warn({ err, request_id }, "the state of a session could not be looked up");
      return undefined;
    }
  }

  /** Rejects with the signal's reason when the signal aborts while the store does not answer: what became of the state is then unknown. */
  async settle(
    run: SessionRun,
    left: Left | undefined,
    requestId: string,
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (left === undefined) return "none";
    const pauses = PAUSES_MS.values();
    const pauseAfter = (error: unknown) => (isRefusal(error) ? pauses.next().value : SILENT_PAUSE_MS);
    const settled = retry(() => this.#store.settle(run, left), pauseAfter, signal);
    try {
      return await untilAborted(settled, signal);
    } catch (err) {
      this.#log.warn({ err, request_id: requestId }, "the state of a session could not be saved");
      signal.throwIfAborted();
      return "none";
    }
  }

  /** Counts a run that has its answer. `left`: also undefined when the store failed at the start of the run. */
  count(fields: SessionFields, left: Left | undefined): void {
    const outcome = outcomeOf(fields, left);
    this.#metrics.answered(outcome);
    if (outcome === "saved" && left?.kind === "stored") this.#metrics.stored(left.size);
  }
}

/** What the run left of its session, as the runner reports it; undefined: nothing. */
export function leftBy(
  { from }: SessionRun,
  {
    session_state_persisted,
    session_state_restore_failed,
    session_snapshot,
  }: Pick<ExecuteResponse, "session_state_persisted" | "session_state_restore_failed" | "session_snapshot">,
): Left | undefined {
  if (session_state_restore_failed) return from === undefined ? undefined : { kind: "failed" };
  if (!session_state_persisted || session_snapshot === undefined) return undefined;
  return session_snapshot.unchanged ? { kind: "unchanged" } : { kind: "stored", size: session_snapshot.size };
}

/** The job with the snapshot among its inputs. */
export function withSnapshot(job: Job, { from }: SessionRun): Job {
  if (from === undefined) return job;
  const { id, storage_session_id } = from;
  const snapshot: JobFile = { id, storage_session_id, name: SNAPSHOT_NAME, kind: "user" };
  return { ...job, files: [...job.files, snapshot] };
}

/** What the runner is told about a run's session. Without `run` there may be a state, but nobody knows where: the restore then fails. */
export const persistSession = (run: SessionRun | undefined): PersistSession => ({
  file_id: run?.to.id ?? newId(),
  filename: SNAPSHOT_NAME,
  restore: run === undefined || run.from !== undefined,
});

export type SessionFields = Pick<
  ExecResponse,
  | "session_state_persisted"
  | "session_state_restore_failed"
  | "session_state_conflict"
  | "session_state_dropped"
>;

/** The session fields of a run's answer. `settled`: undefined when the store failed at the start of the run. */
export function sessionFields(
  settled: Outcome | undefined,
  { session_state_restore_failed, session_state_dropped }: Partial<ExecuteResponse>,
): SessionFields {
  return {
    session_state_persisted: settled === "current",
    session_state_restore_failed: settled === undefined || session_state_restore_failed === true,
    ...(settled === "conflict" ? { session_state_conflict: true } : {}),
    ...(session_state_dropped === undefined || session_state_dropped.length === 0
      ? {}
      : { session_state_dropped }),
  };
}

/** What became of the state of a session, according to the fields of the answer. */
export function outcomeOf(fields: SessionFields, left: Left | undefined): StateOutcome {
  if (fields.session_state_restore_failed) return "restore_failed";
  if (fields.session_state_conflict === true) return "conflict";
  if (!fields.session_state_persisted) return "not_saved";
  return left?.kind === "unchanged" ? "unchanged" : "saved";
}
