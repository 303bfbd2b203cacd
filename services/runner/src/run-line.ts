/** One log line for each run or round on a runner, and the outcome of a run whose caller has left. */
import {
  type ErrorCode,
  type ExecutionOutcome,
  factsOfAnswer,
  outcomeOfError,
  type RoundResponse,
  ServiceError,
  shownMs,
} from "@svc/contracts";
import { runAttributes, toServiceError, traceIdOf } from "@svc/service-kit";
import type { Call } from "./execution/types.ts";
import type { CountedExecution } from "./metrics.ts";

const MAX_LANGUAGE_CHARS = 64;

/** Runs a round and writes its line. `language`: the requested one, for a round without an answer. */
export async function withRunLine(
  { log, requestId, execId, signal, trace }: Call,
  language: string | undefined,
  run: () => Promise<RoundResponse>,
): Promise<RoundResponse> {
  const began = performance.now();
  const asked = language === undefined ? {} : { language: language.slice(0, MAX_LANGUAGE_CHARS) };
  const ids = { request_id: requestId, exec_id: execId, trace_id: traceIdOf(trace?.context) };
  log.debug({ ...ids, ...asked }, "run begins");
  const write = (facts: object): void => {
    const ms = shownMs(performance.now() - began);
    log.info({ ...ids, ms, ...facts }, "run");
  };
  try {
    const answer = await run();
    const facts = factsOfAnswer(answer);
    write({ language: answer.language, ...facts });
    trace?.end(runAttributes({ exec_id: execId, language: answer.language, outcome: facts.outcome }));
    return answer;
  } catch (error) {
    const { code, status } = toServiceError(error);
    const outcome = outcomeOfFault(error, signal);
    write({ ...asked, outcome, error: code });
    trace?.end(runAttributes({ exec_id: execId, outcome, error: code }), status >= 500);
    throw error;
  }
}

/** Whether the caller closed its connection: the run was then cancelled, whatever failed because of it. */
export function isCancelled({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof ServiceError && reason.code === "execution_cancelled";
}

/** The outcome of an execution that ended with an error. `caller`: the signal of its call. */
export function outcomeOfFault(error: unknown, caller: AbortSignal): ExecutionOutcome {
  return isCancelled(caller) ? "cancelled" : outcomeOfError(toServiceError(error));
}

/** Codes of executions that were refused before they began, or that nobody wants any more. */
const WITHOUT_END: ReadonlySet<ErrorCode> = new Set(["runner_busy", "shutting_down", "execution_not_found"]);

/** Counts the end of an execution that has no answer. `caller`: the signal of its call. */
export function countFault(counted: CountedExecution, error: unknown, caller: AbortSignal): void {
  if (error instanceof ServiceError && WITHOUT_END.has(error.code)) counted.abandoned();
  else counted.ended(outcomeOfFault(error, caller));
}
