/**
 * The transition to paused: stores a pause with its new calls, and mints the token that resumes it. The first pause also stores the
 * program.
 */
import {
  type PausedCall,
  type PausedResponse,
  type ProgrammaticResponse,
  ServiceError,
  type ToolCallRequired,
} from "@svc/contracts";
import { type CompletionDeps, endProgram, type RoundOrigin } from "./completion.ts";
import { recordLifeMs } from "./expiry.ts";
import type { ProgrammaticMetrics } from "./metrics.ts";
import { outstandingCalls, pausedRecord, recordedCalls, reportedCalls } from "./paused-record.ts";
import type { RoundJobs } from "./round-jobs.ts";
import type { Program } from "./state.ts";
import { bytesOf } from "./store.ts";
import type { ContinuationTokens } from "./token.ts";

export interface PauseDeps extends CompletionDeps {
  jobs: RoundJobs;
  tokens: ContinuationTokens;
  metrics: ProgrammaticMetrics;
}

/** `grantId`: as in RoundEnd. */
interface PausedRound {
  paused: PausedResponse;
  grantId?: string | undefined;
}

/** Stores the pause and returns its answer. If a failure leaves a program that nobody can resume, it is removed from its runner. */
export async function pauseProgram(
  deps: PauseDeps,
  program: Program,
  origin: RoundOrigin,
  round: PausedRound,
  requestId: string,
): Promise<ProgrammaticResponse> {
  try {
    return await storePause(deps, program, origin, round, requestId).catch(async (error: unknown) => {
      if (!isTooLarge(error)) throw error;
      deps.metrics.oversize.inc({ kind: "state" });
      const how = { grantId: round.grantId, requestId };
      await endProgram(deps, program.execution_id, "fail", { snapshot: origin.snapshot }, how);
      throw error;
    });
  } catch (error) {
    if (deps.config.PTC_MODE === "live" && (await isLost(deps, program.execution_id, origin)))
      deps.jobs.discard(program, round.paused.runner_url, requestId);
    throw error;
  }
}

const isTooLarge = (error: unknown) => error instanceof ServiceError && error.code === "state_too_large";

/**
 * Whether nobody can resume the program: the caller of a failed start has no token, and a program that is over accepts none. Otherwise it
 * may be resumed, because another attempt at the same round may have stored the same pause.
 */
async function isLost({ store }: PauseDeps, id: string, { snapshot }: RoundOrigin): Promise<boolean> {
  if (snapshot === undefined) return true;
  const found = await store.read(id).catch(() => undefined);
  return found !== undefined && found.program === undefined;
}

async function storePause(
  deps: PauseDeps,
  program: Program,
  { snapshot, entry, answered = [] }: RoundOrigin,
  { paused, grantId }: PausedRound,
  requestId: string,
): Promise<ProgrammaticResponse> {
  const { store, exchanges, tokens, config } = deps;
  const id = program.execution_id;
  const before = snapshot?.record;
  const { pending_call_ids: ids } = paused;
  const outstanding = outstandingCalls(before, ids, answered, config.PTC_MAX_CALLS);
  const calls = reportedCalls(program, paused) ?? (await exchanges.recorded(id, ids, requestId));
  const added = await recordedCalls(calls.filter(({ call_id }) => outstanding.added.has(call_id)));
  const to = pausedRecord(before, paused, outstanding, {
    added,
    stateBytes: before?.state_bytes ?? bytesOf(program),
  });
  const grant = grantId ?? before?.grant_id;
  if (grant !== undefined) to.grant_id = grant;
  const owner = before === undefined ? program.output_namespace : before.owner;
  if (owner !== undefined) to.owner = owner;
  if (before?.answer_bytes !== undefined) to.answer_bytes = before.answer_bytes;
  if (to.state_bytes > config.PTC_MAX_STATE_BYTES) throw new ServiceError("state_too_large");
  if (config.PTC_MODE === "replay") delete to.runner_url;
  const token = tokens.mint({ executionId: id, round: to.round }, program.principal);
  const answer = pauseAnswer(paused, program.session_id, calls, token);
  // Every later attempt must use the hash seed of the first process.
  const stored =
    before === undefined ? { ...program, hash_seed: paused.hash_seed ?? program.hash_seed } : program;
  const change = { from: snapshot, to, lifeMs: recordLifeMs(config), added, entry, answer };
  await store.advance(id, before === undefined ? { ...change, program: stored } : change);
  if (before?.grant_id !== grant) exchanges.revoke(before?.grant_id, requestId);
  return answer;
}

export function pauseAnswer(
  paused: PausedResponse,
  sessionId: string,
  calls: readonly PausedCall[],
  token: string,
): ToolCallRequired {
  return {
    status: "tool_call_required",
    session_id: sessionId,
    continuation_token: token,
    tool_calls: calls.map(({ call_id: id, tool_name: name, tool_input }) => {
      const input = tool_input as Record<string, unknown>;
      return { id, name, arguments: input, input };
    }),
    partial_stdout: paused.stdout,
    partial_stderr: paused.stderr,
    tool_calls_made: paused.tool_calls_made,
    execution_time: paused.execution_time,
    ...(paused.limits === undefined ? {} : { limits: paused.limits }),
  } as ToolCallRequired;
}
