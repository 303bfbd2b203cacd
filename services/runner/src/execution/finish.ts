/** The end of every execution: outputs are stored, once, and what happened becomes the answer. */
import { constants } from "node:os";
import { getSystemErrorName } from "node:util";
import { ServiceError } from "@svc/contracts";
import { JailError, type RunOutcome } from "@svc/jail-client";
import { invalidRequest, type Log } from "@svc/service-kit";
import { LargeArchive } from "@svc/session-archive";
import type { RunLimits } from "../admission/limits.ts";
import type { CountedExecution } from "../metrics.ts";
import { outputLimits } from "../outputs/limits.ts";
import { decodeListing, withoutDirectory } from "../outputs/listing.ts";
import { omittedFields, omittedNotes } from "../outputs/omitted.ts";
import { type Listing, planOutputs } from "../outputs/outputs.ts";
import { storeOutputs, type UploadReport } from "../outputs/uploads.ts";
import { outputsView } from "../session-state/outputs-view.ts";
import { planSnapshot } from "../session-state/plan.ts";
import { type Saved, saveState, unsaved } from "../session-state/save.ts";
import { restoreNotes } from "../session-state/stage.ts";
import { droppedField } from "../session-state/variables.ts";
import { captured, withNotes } from "./decode-output.ts";
import type { Ending } from "./exit-status.ts";
import type { Launched } from "./launch.ts";
import { reachedLimits, reachedNotes } from "./soft-limits.ts";
import type { Destination, ExecuteDeps, RunAnswer } from "./types.ts";

export interface Finish {
  launched: Launched;
  outcome: RunOutcome;
  ending: Ending;
  /** Running time of the program, and the time from which outputs are collected. */
  runMs: number;
  endedMs: number;
  setupMs: number;
  limits: RunLimits;
  to: Destination;
  counted: Pick<CountedExecution, "enter">;
  log: Log;
}

const round = (ms: number) => Math.round(ms * 1000) / 1000;

const { E2BIG, EAGAIN, EIO, ENFILE, ENOMEM } = constants.errno;
/** Errors of execve that the machine causes, whatever a compiler made. */
const OF_THE_MACHINE: ReadonlySet<number> = new Set([EAGAIN, EIO, ENFILE, ENOMEM]);

/** A program that cannot be executed is an error and no result, unless a compiler made it so. */
export function refuseUnexecutable({ end: { execErrno } }: RunOutcome, isCompiled = false): void {
  if (execErrno === E2BIG) {
    throw invalidRequest([{ path: "args", problem: "are too long for a program, all together" }]);
  }
  if (execErrno === 0 || (isCompiled && !OF_THE_MACHINE.has(execErrno))) return;
  const cause = new Error(`execve: ${getSystemErrorName(-execErrno)}`);
  throw new ServiceError("sandbox_setup_failed", undefined, { cause });
}

export async function finish(one: Finish, deps: ExecuteDeps): Promise<RunAnswer> {
  const { outcome, ending, limits, to } = one;
  const { end, stdout, stderr } = outcome;
  const { plan, report, omitted, allowed, listing } = await collect(one, deps);
  const state = await saveSession(one, listing, report, deps);
  const reached = reachedLimits(outcome, limits);
  const notes = [
    ...omittedNotes(omitted, listing, allowed),
    ...reachedNotes(reached),
    ...restoreNotes(one.launched.session),
    ...(state?.notes ?? []),
    ...ending.notes,
  ];
  return {
    session_id: to.sessionId,
    stdout: captured(stdout, end.stdoutTotal, limits.outputCap),
    stderr: withNotes(captured(stderr, end.stderrTotal, limits.outputCap), notes),
    files: [...report.files, ...plan.inherited.map((ref) => ({ ...ref, inherited: true }))],
    code: ending.code,
    signal: ending.signal,
    message: ending.message,
    status: ending.status,
    wall_time: round(end.wallUs / 1000),
    cpu_time: round(end.cpuUs / 1000),
    memory: end.memoryPeak,
    timings: {
      setup_ms: round(one.setupMs),
      run_ms: round(one.runMs),
      collect_ms: round(performance.now() - one.endedMs),
    },
    session_state_persisted: state?.snapshot !== undefined,
    session_state_restore_failed: one.launched.session?.restoreFailed ?? false,
    ...(state?.snapshot === undefined ? {} : { session_snapshot: state.snapshot }),
    ...droppedField(state?.dropped ?? []),
    ...(reached.length > 0 ? { limits_reached: reached } : {}),
    ...(plan.deleted.length > 0 ? { deleted_files: plan.deleted } : {}),
    ...omittedFields(omitted, plan.unlisted),
    ...(report.failed > 0 ? { artifact_delivery: delivery(report) } : {}),
  };
}

async function collect({ launched, outcome, to, counted, log }: Finish, { config, gateway }: ExecuteDeps) {
  const { staged, own, restored } = launched.staged;
  const listing = decodeListing(outcome.listing);
  const view = launched.session === undefined ? listing : outputsView(listing, own, restored);
  const allowed = outputLimits(config);
  const plan = planOutputs(withoutDirectory(view, launched.build), staged, allowed);
  counted.enter("store");
  const report = await storeOutputs(plan.uploads, {
    gateway,
    run: to.run,
    jail: launched.jail,
    outputSession: to.outputSession,
    concurrency: config.SANDBOX_UPLOAD_CONCURRENCY,
    onFailure: (error) => log.warn({ err: error, request_id: to.run.requestId }, "storing an output failed"),
  });
  return { plan, report, omitted: [...report.omitted, ...plan.omitted], allowed, listing };
}

/** Undefined: no state is saved, because the run has no session, was killed, or began without the state of its session. */
async function saveSession(
  { launched, outcome, to, log }: Finish,
  listing: Listing,
  { failed }: UploadReport,
  { config, gateway }: ExecuteDeps,
): Promise<Saved | undefined> {
  const { session, jail, staged, entry, build } = launched;
  const hasEnded = ["exited", "signaled"].includes(outcome.end.cause) && outcome.end.execErrno === 0;
  if (session === undefined || session.restoreFailed || !hasEnded) return undefined;
  // Callers repeat a run whose files they did not get, so its state must not become current.
  if (failed > 0) return unsaved("an output could not be stored");
  const plan = planSnapshot({ listing, ...staged, entry, build });
  return saveState(plan, {
    gateway,
    run: to.run,
    jail,
    outputSession: to.outputSession,
    fileId: session.fileId,
    hasVariables: session.hasVariables,
    maxBytes: config.SVC_SESSION_STATE_MAX_BYTES,
    onFailure: (err) =>
      log.warn({ err, request_id: to.run.requestId }, "storing the state of a session failed"),
  });
}

function delivery({ attempted, failed }: { attempted: number; failed: number }) {
  return {
    code: "artifact_delivery_failed" as const,
    status: failed === attempted ? ("failed" as const) : ("partial" as const),
    attempted,
    delivered: attempted - failed,
    failed,
  };
}

const NOT_PERMITTED: ReadonlySet<number | undefined> = new Set([
  constants.errno.EPERM,
  constants.errno.EACCES,
]);

/** A missing permission is a problem of the installation and lasts; other failures pass. */
function setupFailure(error: JailError): ServiceError {
  const code = NOT_PERMITTED.has(error.errno) ? "permission_denied" : "sandbox_setup_failed";
  return new ServiceError(code, undefined, { cause: error });
}

function unstageable(what: string, problem: string, cause: unknown): ServiceError {
  const details = [{ path: "files", problem }];
  return new ServiceError("invalid_file_reference", `${what} ${problem}.`, { details, cause });
}

/** Turns errors of a jail or of a session's state into ServiceErrors. */
export function asServiceError(error: unknown): unknown {
  if (error instanceof LargeArchive)
    return unstageable("The state of the session", "is larger than SVC_SESSION_STATE_MAX_BYTES", error);
  if (!(error instanceof JailError)) return error;
  if (error.kind === "inputs_do_not_fit" && !error.started)
    return unstageable("The input files", "do not fit into the workspace", error);
  if (!error.started) return setupFailure(error);
  return new ServiceError("sandbox_execution_failed", undefined, { status: 500, cause: error });
}
