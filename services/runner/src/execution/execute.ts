/**
 * One execution on the runner: lease a slot, stage, run, store outputs, answer. Every failure of ours is a ServiceError;
 * a program's failure is an answer. The caller's signal, the deadline and shutdown all kill the run through one signal.
 * Programs with tools, which pause in between, are in programmatic/.
 */
import { deadlinesFor, type ExecuteRequest, type ExecuteResponse, newId, ServiceError } from "@svc/contracts";
import { type Config, DeadlineSignal, type Log, nameLimits } from "@svc/service-kit";
import { compileLimitsFor, limitsFor, type RunLimits, usedLimits } from "../admission/limits.ts";
import type { CountedExecution } from "../metrics.ts";
import { countFault, isCancelled } from "../run-line.ts";
import { compile } from "./compile.ts";
import { type Ending, endingOf } from "./exit-status.ts";
import { asServiceError, finish, refuseUnexecutable } from "./finish.ts";
import { launch } from "./launch.ts";
import { type InputLimits, isMade, type Program, programOf } from "./program.ts";
import { RunEvents } from "./run-events.ts";
import type { Call, Destination, ExecuteDeps, RunAnswer } from "./types.ts";

export async function execute(
  request: ExecuteRequest,
  call: Call,
  deps: ExecuteDeps,
): Promise<ExecuteResponse> {
  const isOfSession = request.persist_session != null && deps.config.SVC_PERSIST_SESSIONS;
  const find = isOfSession ? "findSession" : "find";
  const runtime = deps.runtimes[find](request.language, request.version ?? "*");
  const limited = { ...request, language: runtime.language };
  const limits = limitsFor(deps.config, deps.overrides, limited);
  const compileLimits = compileLimitsFor(deps.config, deps.overrides, limited);
  const memory = { run: limits.memoryBytes, compile: compileLimits.memoryBytes };
  const program = offered(programOf(request, runtime, inputLimits(deps.config), memory), deps.config);
  const events = call.tell && new RunEvents(call.tell, runtime);
  const within = new DeadlineSignal(call.signal, deadlinesFor(limits.wallMs, deps.config).runner);
  const { signal } = within;
  const counted = deps.metrics.began(runtime.language, call.trace);
  try {
    const release = await deps.slots.lease(signal);
    try {
      const to = destinationOf(request, { ...call, signal });
      const { answer, ending } = await runLeased(
        program,
        { run: limits, compile: compileLimits },
        to,
        { counted, log: call.log, events },
        deps,
      );
      counted.ended(ending.outcome);
      const { language, version } = runtime;
      return { ...answer, language, version, limits: usedLimits(limits) };
    } finally {
      release();
    }
  } catch (error) {
    countFault(counted, error, call.signal);
    if (within.isLate) throw new ServiceError("deadline_exceeded", undefined, { cause: error });
    if (isCancelled(call.signal)) throw call.signal.reason;
    throw asServiceError(error);
  } finally {
    events?.end();
    within.end();
  }
}

async function runLeased(
  program: Program,
  { run: limits, compile: compileLimits }: { run: RunLimits; compile: RunLimits },
  to: Destination,
  { counted, log, events }: { counted: CountedExecution; log: Log; events: RunEvents | undefined },
  deps: ExecuteDeps,
): Promise<{ answer: RunAnswer; ending: Ending }> {
  const { run } = to;
  const beganMs = performance.now();
  const compiled = await compile(program, compileLimits, to, counted, deps);
  if ("answer" in compiled) return compiled;
  const launched = await launch(
    {
      program: compiled.program,
      limits,
      run,
      life: run.signal,
      counted,
      events,
      isLive: events !== undefined,
    },
    deps,
  );
  // The compiled program is in its jail now. Its memory here is freed: runs may be long, and there may be many.
  const isCompiled = isMade(compiled.program);
  compiled.program.made.splice(0);
  try {
    const outcome = await launched.jail.outcome();
    counted.enter("collect");
    const endedMs = performance.now();
    // The notice of the start can arrive late; the jail's own clock cannot.
    const runMs = Math.max(endedMs - launched.startedMs, outcome.end.wallUs / 1000);
    refuseUnexecutable(outcome, isCompiled);
    const ending = endingOf(outcome.end, limits);
    const setupMs = endedMs - beganMs - runMs;
    const one = { launched, outcome, ending, runMs, endedMs, setupMs, limits, to, counted, log };
    return { answer: await finish(one, deps), ending };
  } finally {
    launched.jail.close();
  }
}

/** A runner that keeps no sessions restores no state, and its answer says so. */
function offered(program: Program, { SVC_PERSIST_SESSIONS }: Config): Program {
  const { session, ...plain } = program;
  if (SVC_PERSIST_SESSIONS || session === undefined) return program;
  if (session.snapshot === undefined && !session.restoreFailed) return plain;
  const { snapshot: _, ...failed } = session;
  return { ...plain, session: { ...failed, restoreFailed: true } };
}

export const inputLimits = (config: Config): InputLimits => ({
  names: nameLimits(config),
  maxFiles: config.SANDBOX_MAX_INPUT_FILES,
});

/** Where the outputs of a request go. */
export function destinationOf(
  request: Pick<ExecuteRequest, "session_id" | "output_session_id" | "egress_grant">,
  { requestId, signal, trace }: Pick<Call, "requestId" | "signal" | "trace">,
): Destination {
  return {
    sessionId: request.session_id ?? newId(),
    outputSession: request.output_session_id ?? request.session_id ?? "",
    run: { grant: request.egress_grant ?? "", requestId, signal, trace },
  };
}
