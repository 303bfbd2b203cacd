/**
 * Resumes a paused program: accepts the results, then makes the next round. The round is live while the runner still keeps the paused
 * program, otherwise it is a replay from the top. The caller sees no difference. A resume goes on when its client disconnects, and its
 * answer is kept for the next request with the same results.
 */
import {
  type ErrorCode,
  type ProgrammaticResponse,
  roundLifeMs,
  ServiceError,
  type TraceContext,
} from "@svc/contracts";
import { ProducerStopped } from "@svc/job-queue";
import { type FastifyReply, type FastifyRequest, type Log, toServiceError } from "@svc/service-kit";
import type { ExecDeps } from "../exec/asked.ts";
import { clientLeft } from "../exec/client.ts";
import { callerKey } from "../limits/limiter.ts";
import type { HoldingRound } from "../limits/seats.ts";
import type { Once, OwnEntry } from "../once/once.ts";
import { noteOutliving, noteRun } from "../request-log.ts";
import type { RunStream } from "../streams/run-stream.ts";
import { traceOf } from "../tracing.ts";
import { AcceptedResults, modeOf } from "./accept-results.ts";
import type { CancelDeps } from "./cancel.ts";
import { completeProgram } from "./completion.ts";
import { type AnswerRenewal, MAX_FROM_TOP, roundAnswerKey } from "./expiry.ts";
import { forgetProgram, labelOf, rememberResume } from "./labels.ts";
import type { ResumeOutcome } from "./metrics.ts";
import { type PauseDeps, pauseProgram } from "./pause.ts";
import { parseResume } from "./request.ts";
import { factsOfEnd, type RoundEnd } from "./round-jobs.ts";
import { withExecution } from "./start.ts";
import { type Mode, nextState, type Program, type ProgramRecord } from "./state.ts";
import type { Snapshot, Stored } from "./store.ts";
import type { WaitingResults } from "./waiting-results.ts";

export interface ResumeDeps extends PauseDeps, CancelDeps, Pick<ExecDeps, "principalOf"> {
  log: Log;
  once: Once;
  holdingRound: HoldingRound;
  waiting: WaitingResults;
  renewal: AnswerRenewal;
}

interface ResumeRequest {
  request: FastifyRequest;
  /** Aborted when its client disconnects. It then stops waiting for another request's answer, but a round that it makes goes on. */
  left: AbortSignal;
  stream: RunStream | undefined;
  onMode: (mode: Mode) => void;
}

/** A resume whose results are accepted. `entry` keeps its answer. */
interface Resume extends Stored {
  results: AcceptedResults;
  entry: OwnEntry;
  requestId: string;
  /** The trace context of the request. */
  trace: TraceContext | undefined;
  cancelled: AbortSignal;
  onMode: (mode: Mode) => void;
  onEnd: (end: RoundEnd) => void;
  stream: RunStream | undefined;
}

/**
 * Failures after which the runner still keeps the frozen program: its runner, or the way to it, was busy. A runner that has lost the program
 * answers `execution_not_found` instead.
 */
const NEVER_STARTED: ReadonlySet<ErrorCode> = new Set(["queue_saturated", "sandbox_setup_failed"]);
/** Failures after which another attempt would not help, or is not allowed. */
const FINAL: ReadonlySet<ErrorCode> = new Set([
  "execution_cancelled",
  "execution_timeout",
  "store_unavailable",
  "input_unavailable",
  "internal_error",
  ...NEVER_STARTED,
]);

export async function handleResume(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: ResumeDeps,
  stream: RunStream | undefined,
): Promise<{ answer: ProgrammaticResponse; replayed: boolean }> {
  let mode: Mode = deps.config.PTC_MODE;
  const count = (outcome: ResumeOutcome) => deps.metrics.continuations.inc({ mode, outcome });
  const onMode = (chosen: Mode) => {
    mode = chosen;
  };
  try {
    const outcome = await resumeOnce({ request, left: clientLeft(reply), stream, onMode }, deps);
    const { status } = outcome.answer;
    count(status === "tool_call_required" ? "paused" : status);
    return outcome;
  } catch (error) {
    const { status } = toServiceError(error);
    count(status < 500 ? "client_error" : "retryable_error");
    throw error;
  }
}

/** Drops the body after parsing, because a waiting request must not hold large fields that nobody reads. */
function takeBody(request: FastifyRequest): ReturnType<typeof parseResume> {
  const parsed = parseResume(request.body);
  request.body = undefined;
  return parsed;
}

/** Makes the round once. The same token and results give the same answer. */
async function resumeOnce(
  { request, left, stream, onMode }: ResumeRequest,
  deps: ResumeDeps,
): Promise<{ answer: ProgrammaticResponse; replayed: boolean }> {
  const { cancellations, once, renewal, tokens } = deps;
  const principal = deps.principalOf(request);
  const { token, results: given } = takeBody(request);
  const continuation = tokens.open(token, principal);
  const { executionId, round } = continuation;
  noteOutliving(request);
  noteRun(request, { exec_id: executionId });
  const onEnd = (end: RoundEnd) => noteRun(request, factsOfEnd(end));
  const labels = new Set<string>();
  // Clients give every request a new label, and cancel with the label of the request that they gave up.
  const label = labelOf(request.headers);
  if (label !== undefined) {
    labels.add(label);
    await rememberResume(deps, principal, label, executionId);
  }
  const results = new AcceptedResults(deps, continuation, given);
  const onWait = () => {
    deps.metrics.contention.inc();
    return deps.waiting.hold(callerKey(principal), results.bytes);
  };
  const asked = { store: roundAnswerKey(executionId, round), body: results.digest, left, onWait };
  const outcome = await cancellations.during(executionId, (cancelled) =>
    once.run(asked, ({ entry }) =>
      // A refusal changes nothing, so the token stays valid.
      deps.holdingRound(principal, async () => {
        const stored = await results.accept();
        const { program, snapshot } = stored;
        noteRun(request, { language: program.language });
        renewStartLabel(deps, labels, program);
        const span = traceOf(request);
        span?.link(program.trace);
        const { id: requestId } = request;
        const { told } = snapshot.record;
        if (told !== undefined) stream?.passOver(told);
        const trace = span?.context;
        const resume = { ...stored, results, entry, requestId, trace, cancelled, onMode, onEnd, stream };
        return nextRound(deps, resume);
      }),
    ),
  );
  // For a replay this was done already, when its answer was made.
  if (!outcome.replayed) renewal.renew(continuation, Date.now());
  const answer = outcome.answer as ProgrammaticResponse;
  if (answer.status !== "tool_call_required") forgetProgram(deps, principal, labels, executionId);
  return { ...outcome, answer };
}

/** Runs in the background: the previous resume already keeps the label for longer than until this one. */
function renewStartLabel(
  deps: ResumeDeps,
  labels: Set<string>,
  { principal, label, execution_id }: Program,
): void {
  if (label === undefined || labels.has(label)) return;
  labels.add(label);
  rememberResume(deps, principal, label, execution_id).catch(() => undefined);
}

async function nextRound(deps: ResumeDeps, resume: Resume): Promise<ProgrammaticResponse> {
  try {
    return await attemptRound(deps, resume);
  } catch (error) {
    throw withExecution(error, resume.program);
  }
}

async function attemptRound(deps: ResumeDeps, resume: Resume): Promise<ProgrammaticResponse> {
  const { program, requestId, cancelled, entry, results, onMode, onEnd } = resume;
  const id = program.execution_id;
  let { snapshot } = resume;
  for (let fromTop = 0; ; ) {
    const mode = attemptOf(snapshot).mode;
    onMode(mode);
    if (mode === "replay") fromTop++;
    try {
      const end = await runAttempt(deps, resume, snapshot.record);
      onEnd(end);
      const origin = { snapshot, entry, answered: results.answers.map(({ call_id }) => call_id) };
      return "ended" in end
        ? await completeProgram(deps, id, origin, end, requestId)
        : await pauseProgram(deps, program, origin, end, requestId);
    } catch (error) {
      cancelled.throwIfAborted();
      const code = error instanceof ServiceError ? error.code : "internal_error";
      // When this process stops, the attempt goes on without it, and the next request finds it.
      if (code === "state_too_large" || error instanceof ProducerStopped) throw error;
      deps.log.warn({ request_id: requestId, mode, err: error }, "attempt to resume a program failed");
      snapshot = await nextAttempt(deps, id, snapshot, code);
      const again = mode === "live" || (code === "sandbox_execution_failed" && fromTop < MAX_FROM_TOP);
      if (FINAL.has(code) || !again) throw error;
    }
  }
}

function runAttempt(
  { jobs }: ResumeDeps,
  { program, results, requestId, trace, cancelled: signal, stream }: Resume,
  record: ProgramRecord,
): Promise<RoundEnd> {
  const { runner_url: runnerUrl, run_ms: runMs, calls, round, pending, attempt } = record;
  const one = {
    program,
    round: round + 1,
    number: attempt?.number ?? 1,
    requestId,
    signal,
    trace,
    stream,
    place: "first" as const,
  };
  return attempt?.mode === "live" && runnerUrl !== undefined
    ? jobs.resume(one, { runnerUrl, runMs, answers: results.answers, pending: pending.length })
    : jobs.fromTop(one, { calls, runMs });
}

/** Gives the next attempt its own number, so that it does not join the job of the failed attempt. */
export async function nextAttempt(
  { store, config }: Pick<ResumeDeps, "store" | "config">,
  id: string,
  from: Snapshot,
  code: ErrorCode,
): Promise<Snapshot> {
  const { status, runner_url, ...rest } = from.record;
  const { results, number } = attemptOf(from);
  const to: ProgramRecord = { ...rest, status: nextState(status, "retry") as "resuming" };
  if (NEVER_STARTED.has(code) && runner_url !== undefined) to.runner_url = runner_url;
  to.attempt = { results, mode: modeOf(to, config), number: number + 1 };
  return store.advance(id, { from, to, lifeMs: roundLifeMs(config) });
}

function attemptOf({ record }: Snapshot): NonNullable<ProgramRecord["attempt"]> {
  if (record.attempt === undefined) throw new ServiceError("internal_error");
  return record.attempt;
}
