/**
 * What becomes of a program when a round has ended: the pause is recorded with its calls and gets a token, or the end is
 * recorded and everything else is forgotten.
 */
import {
  canonicalArguments,
  type PausedCall,
  type PausedResponse,
  type ProgrammaticResponse,
  type RecordedCall,
  ServiceError,
} from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import type { OwnEntry } from "../once/once.ts";
import { type EndedRound, endAnswer, pauseAnswer } from "./answers.ts";
import type { RoundEnd } from "./attempts.ts";
import type { ProgrammaticMetrics } from "./metrics.ts";
import type { Program, Progress } from "./program.ts";
import type { Known, Programs } from "./programs.ts";
import type { ContinuationTokens } from "./token.ts";
import type { ToolSessions } from "./tool-sessions.ts";

export interface EndsDeps {
  config: Config;
  programs: Programs;
  sessions: ToolSessions;
  tokens: ContinuationTokens;
  metrics: ProgrammaticMetrics;
}

/** What a round was made of: nothing yet with the first one. */
export interface Before {
  known?: Known | undefined;
  /** Keeps the answer, in the same step that records the end of the round. */
  entry?: OwnEntry;
}

export class Ends {
  readonly #deps: EndsDeps;

  constructor(deps: EndsDeps) {
    this.#deps = deps;
  }

  /** How long everything is kept from now, when nothing more comes. */
  get lifeMs(): number {
    return this.#deps.config.TOOL_CALL_SESSION_EXPIRY * 1000;
  }

  async paused(
    program: Program,
    { known, entry }: Before,
    { paused, grantId }: Extract<RoundEnd, { paused: PausedResponse }>,
    requestId: string,
  ): Promise<ProgrammaticResponse> {
    const { programs, sessions, tokens, config } = this.#deps;
    const id = program.execution_id;
    const calls =
      toldCalls(program, paused) ?? (await sessions.recorded(id, paused.pending_call_ids, requestId));
    const { to, added } = pausedProgress(known?.progress, paused, calls, stateBytesOf(program, known));
    const before = known?.progress.grant_id;
    const current = grantId ?? before;
    if (current !== undefined) to.grant_id = current;
    if (to.state_bytes > config.PTC_MAX_STATE_BYTES) {
      this.#deps.metrics.oversize.inc({ kind: "state" });
      await this.#over(id, { known }, grantId, requestId);
      throw new ServiceError("state_too_large");
    }
    if (config.PTC_MODE === "replay") delete to.runner_url;
    const token = tokens.mint({ executionId: id, round: to.round }, program.principal);
    const answer = pauseAnswer(
      paused,
      program.session_id,
      calls.map(({ call_id, tool_name, tool_input }) => ({
        id: call_id,
        name: tool_name,
        input: tool_input as Record<string, unknown>,
      })),
      token,
    );
    const kept = known === undefined ? withSeed(program, paused.hash_seed) : program;
    const change = { from: known, to, lifeMs: this.lifeMs, added, entry, answer };
    const done = await programs.advance(id, known === undefined ? { ...change, program: kept } : change);
    if (done === undefined) throw new ServiceError("execution_cancelled");
    programs.keepCopy(id, kept, done);
    if (before !== current) sessions.revoke(before, requestId);
    return answer;
  }

  async ended(
    program: Program,
    before: Before,
    { ended, grantId }: { ended: EndedRound; grantId?: string },
    requestId: string,
  ): Promise<ProgrammaticResponse> {
    const answer = endAnswer(ended, this.#deps.config.PTC_MAX_CALLS);
    await this.#over(program.execution_id, before, grantId, requestId, answer);
    return answer;
  }

  /** A start that failed: there is nothing of it but its session. */
  failed({ execution_id }: Program, requestId: string): void {
    this.#deps.sessions.end(execution_id, undefined, requestId);
  }

  /** Records the end of a program; one that never paused has left nothing. */
  async #over(
    id: string,
    { known, entry }: Before,
    grantId: string | undefined,
    requestId: string,
    answer?: ProgrammaticResponse,
  ): Promise<void> {
    const { programs, sessions } = this.#deps;
    try {
      if (known === undefined) return;
      const to: Progress = { ...known.progress, status: "ended", waiting: [] };
      delete to.taken;
      const done = await programs.advance(id, { from: known, to, lifeMs: this.lifeMs, entry, answer });
      if (done === undefined) throw new ServiceError("execution_cancelled");
      programs.forget(id);
    } finally {
      sessions.end(id, grantId, requestId);
      sessions.revoke(known?.progress.grant_id, requestId);
    }
  }
}

/** A program is stored with its first pause, which knows the seed that all further attempts must have. */
function withSeed(program: Program, hash_seed = program.hash_seed): Program {
  return { ...program, hash_seed };
}

/** Bytes of the program and its calls so far. */
function stateBytesOf(program: Program, known: Known | undefined): number {
  return known?.progress.state_bytes ?? programBytes(program);
}

export function programBytes(program: Program): number {
  return Buffer.byteLength(JSON.stringify(program));
}

/** What the pause itself tells of its calls; only calls of tools that were declared are believed. Pure. */
export function toldCalls(
  { tools }: Pick<Program, "tools">,
  paused: PausedResponse,
): readonly PausedCall[] | undefined {
  const { pending_calls: calls, pending_call_ids: ids } = paused;
  if (calls === undefined || calls.length !== ids.length) return undefined;
  const isBelieved = ({ call_id, tool_name, tool_input }: PausedCall, at: number) =>
    call_id === ids[at] &&
    tools.some(({ name }) => name === tool_name) &&
    typeof tool_input === "object" &&
    tool_input !== null &&
    !Array.isArray(tool_input);
  return calls.every(isBelieved) ? calls : undefined;
}

/** The progress after a pause, and the calls that are new. Pure. */
export function pausedProgress(
  before: Progress | undefined,
  paused: PausedResponse,
  calls: readonly PausedCall[],
  stateBytes: number,
): { to: Progress; added: RecordedCall[] } {
  const places = new Map(before?.waiting.map(({ call_id, at }) => [call_id, at]));
  const recorded = before?.calls ?? 0;
  const added: RecordedCall[] = [];
  const waiting = calls.map(({ call_id, tool_name, tool_input }) => {
    const known = places.get(call_id);
    if (known !== undefined) return { call_id, at: known };
    added.push({ call_id, name: tool_name, input_json: canonicalArguments(tool_input) });
    return { call_id, at: recorded + added.length - 1 };
  });
  const to: Progress = {
    status: "paused",
    round: (before?.round ?? 0) + 1,
    waiting,
    runner_url: paused.runner_url,
    paused_at: Date.now(),
    run_ms: paused.execution_time,
    calls: recorded + added.length,
    history_bytes: before?.history_bytes ?? 0,
    state_bytes: stateBytes + added.reduce((sum, call) => sum + JSON.stringify(call).length, 0),
  };
  return { to, added };
}
