/** One log line for each run or round on a runner, and what a caller that left means for its outcome. */
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

/** Runs a round and writes its line. `language`: as the request asks for it, for a round without an answer. */
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

/** The caller closed its connection: the run was cancelled, whatever broke because of it. */
export function isCancelled({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof ServiceError && reason.code === "execution_cancelled";
}

/** How an execution counts that ended with an error. `caller`: the signal of its call. */
export function outcomeOfFault(error: unknown, caller: AbortSignal): ExecutionOutcome {
  return isCancelled(caller) ? "cancelled" : outcomeOfError(toServiceError(error));
}

/** The execution was refused before it began, or nobody wants it any more. */
const WITHOUT_END: ReadonlySet<ErrorCode> = new Set(["runner_busy", "shutting_down", "execution_not_found"]);

/** Counts the end of an execution that has no answer. `caller`: the signal of its call. */
export function countFault(counted: CountedExecution, error: unknown, caller: AbortSignal): void {
  if (error instanceof ServiceError && WITHOUT_END.has(error.code)) counted.abandoned();
  else counted.ended(outcomeOfFault(error, caller));
}
