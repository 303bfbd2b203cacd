/**
 * The transition to paused: stores a pause with its new calls, and mints the token that resumes it. The first pause stores
 * the program.
 */
import {
  canonicalArguments,
  type PausedCall,
  type PausedResponse,
  type ProgrammaticResponse,
  type RecordedCall,
  ServiceError,
  type ToolCallRequired,
} from "@svc/contracts";
import { type CompletionDeps, endProgram, type RoundOrigin } from "./completion.ts";
import { recordLifeMs } from "./expiry.ts";
import type { ProgrammaticMetrics } from "./metrics.ts";
import type { RoundJobs } from "./round-jobs.ts";
import { nextState, type Program, type ProgramRecord } from "./state.ts";
import { bytesOf, storedBytesOf } from "./store.ts";
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

/** Stores the pause, and gives the answer to it. A program that nobody can resume after a failure is removed from its runner. */
export async function pauseProgram(
  deps: PauseDeps,
  program: Program,
  origin: RoundOrigin,
  round: PausedRound,
  requestId: string,
): Promise<ProgrammaticResponse> {
  try {
    return await storePause(deps, program, origin, round, requestId);
  } catch (error) {
    if (deps.config.PTC_MODE === "live" && (await isLost(deps, program.execution_id, origin)))
      deps.jobs.discard(program, round.paused.runner_url, requestId);
    throw error;
  }
}

/**
 * Whether nobody can resume the program: the caller of a start that failed has no token, and a program that is over takes none. Another
 * attempt at the same round may have stored the same pause.
 */
async function isLost({ store }: PauseDeps, id: string, { snapshot }: RoundOrigin): Promise<boolean> {
  if (snapshot === undefined) return true;
  const found = await store.read(id).catch(() => undefined);
  return found !== undefined && found.program === undefined;
}

async function storePause(
  deps: PauseDeps,
  program: Program,
  { snapshot, entry }: RoundOrigin,
  { paused, grantId }: PausedRound,
  requestId: string,
): Promise<ProgrammaticResponse> {
  const { store, exchanges, tokens, config } = deps;
  const id = program.execution_id;
  const before = snapshot?.record;
  const calls =
    reportedCalls(program, paused) ?? (await exchanges.recorded(id, paused.pending_call_ids, requestId));
  const stateBytes = before?.state_bytes ?? programBytes(program);
  const { to, added } = pausedRecord(before, paused, calls, stateBytes);
  const grant = grantId ?? before?.grant_id;
  if (grant !== undefined) to.grant_id = grant;
  const owner = before === undefined ? program.output_namespace : before.owner;
  if (owner !== undefined) to.owner = owner;
  if (before?.answer_bytes !== undefined) to.answer_bytes = before.answer_bytes;
  if (to.state_bytes > config.PTC_MAX_STATE_BYTES) {
    deps.metrics.oversize.inc({ kind: "state" });
    await endProgram(deps, id, "fail", { snapshot }, { grantId, requestId });
    throw new ServiceError("state_too_large");
  }
  if (config.PTC_MODE === "replay") delete to.runner_url;
  const token = tokens.mint({ executionId: id, round: to.round }, program.principal);
  const answer = pauseAnswer(paused, program.session_id, calls, token);
  // Every further attempt must have the seed of the process that began.
  const stored =
    before === undefined ? { ...program, hash_seed: paused.hash_seed ?? program.hash_seed } : program;
  const change = { from: snapshot, to, lifeMs: recordLifeMs(config), added, entry, answer };
  const done = await store.transition(id, before === undefined ? { ...change, program: stored } : change);
  if (done === undefined) throw new ServiceError("execution_cancelled");
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

export function programBytes(program: Program): number {
  return bytesOf(program);
}

/** The calls that the pause itself reports. Only calls of declared tools are accepted. Pure. */
export function reportedCalls(
  { tools }: Pick<Program, "tools">,
  paused: PausedResponse,
): readonly PausedCall[] | undefined {
  const { pending_calls: calls, pending_call_ids: ids } = paused;
  if (calls === undefined || calls.length !== ids.length) return undefined;
  const isAcceptable = ({ call_id, tool_name, tool_input }: PausedCall, at: number) =>
    call_id === ids[at] &&
    tools.some(({ name }) => name === tool_name) &&
    typeof tool_input === "object" &&
    tool_input !== null &&
    !Array.isArray(tool_input);
  return calls.every(isAcceptable) ? calls : undefined;
}

/** The record after a pause, and the calls that are new. Pure. */
export function pausedRecord(
  before: ProgramRecord | undefined,
  paused: PausedResponse,
  calls: readonly PausedCall[],
  stateBytes: number,
): { to: ProgramRecord; added: RecordedCall[] } {
  const places = new Map(before?.pending.map(({ call_id, at }) => [call_id, at]));
  const recorded = before?.calls ?? 0;
  const added: RecordedCall[] = [];
  const pending = calls.map(({ call_id, tool_name, tool_input }) => {
    const place = places.get(call_id);
    if (place !== undefined) return { call_id, at: place };
    added.push({ call_id, name: tool_name, input_json: canonicalArguments(tool_input) });
    return { call_id, at: recorded + added.length - 1 };
  });
  const storedBefore = before?.stored_bytes ?? stateBytes + (before?.history_bytes ?? 0);
  const to: ProgramRecord = {
    status: nextState(before?.status ?? "running", "pause") as "paused",
    round: (before?.round ?? 0) + 1,
    pending,
    runner_url: paused.runner_url,
    paused_at: Date.now(),
    told: { stdout: paused.stdout.length, stderr: paused.stderr.length },
    run_ms: paused.execution_time,
    calls: recorded + added.length,
    history_bytes: before?.history_bytes ?? 0,
    state_bytes: added.reduce((sum, call) => sum + bytesOf(call), stateBytes),
    stored_bytes: added.reduce((sum, call) => sum + storedBytesOf(call), storedBefore),
  };
  return { to, added };
}
