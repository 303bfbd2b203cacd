/**
 * The transitions to completed and failed: makes the answer, writes the last record of the program, and releases everything else that
 * was kept for it.
 */
import {
  type ErrorType,
  faultText,
  type OutputFile,
  type ProgrammaticFault,
  type ProgrammaticResponse,
  type RunStatus,
  type UsedLimits,
} from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import type { OwnEntry } from "../once/once.ts";
import { recordLifeMs } from "./expiry.ts";
import { nextState, type ProgramRecord } from "./state.ts";
import type { ProgramStore, Snapshot } from "./store.ts";
import type { ToolExchanges } from "./tool-exchanges.ts";

export interface CompletionDeps {
  config: Config;
  store: ProgramStore;
  exchanges: ToolExchanges;
}

/** What a round starts from. A first round has no record. */
export interface RoundOrigin {
  snapshot?: Snapshot | undefined;
  /** Ids of the calls whose results started the round. */
  answered?: readonly string[];
  /** The idempotency entry. It receives the answer atomically with the record of the round's end. */
  entry?: OwnEntry;
}

/** A worker's answer for a program that ended: the answer of an execution, plus the outcome of its tool calls. */
export interface EndedRound {
  session_id: string;
  stdout: string;
  stderr: string;
  files: OutputFile[];
  code: number;
  signal: string | null;
  status: RunStatus | null;
  execution_time?: number;
  tool_calls_made?: number;
  programmatic_fault?: ProgrammaticFault;
  limits?: UsedLimits;
  [field: string]: unknown;
}

/** Records the end of a program and returns its answer. */
export async function completeProgram(
  deps: CompletionDeps,
  id: string,
  origin: RoundOrigin,
  { ended, grantId }: { ended: EndedRound; grantId?: string },
  requestId: string,
): Promise<ProgrammaticResponse> {
  const answer = endAnswer(ended, deps.config.PTC_MAX_CALLS);
  const event = answer.status === "completed" ? "complete" : "fail";
  await endProgram(deps, id, event, origin, { answer, grantId, requestId });
  return answer;
}

/** Ends a program whose round is over. A program that never paused has no record. */
export async function endProgram(
  { store, exchanges, config }: CompletionDeps,
  id: string,
  event: "complete" | "fail",
  { snapshot, entry }: RoundOrigin,
  how: { answer?: ProgrammaticResponse; grantId: string | undefined; requestId: string },
): Promise<void> {
  const { answer, grantId, requestId } = how;
  try {
    if (snapshot === undefined) return;
    const { attempt: _, ...record } = snapshot.record;
    const status = nextState(record.status, event) as ProgramRecord["status"];
    const to: ProgramRecord = { ...record, status, pending: [] };
    await store.advance(id, { from: snapshot, to, lifeMs: recordLifeMs(config), entry, answer });
  } finally {
    exchanges.end(id, grantId, requestId);
    exchanges.revoke(snapshot?.record.grant_id, requestId);
  }
}

/** `maxCalls`: tool calls that an execution may make. */
export function endAnswer(ended: EndedRound, maxCalls: number): ProgrammaticResponse {
  const {
    status: sandbox_status,
    programmatic_fault: _f,
    message: _m,
    wall_time,
    cpu_time: _c,
    memory: _mem,
    language: _l,
    version: _v,
    timings: _t,
    execution_time,
    tool_calls_made,
    ...shown
  } = ended;
  const fields = {
    ...shown,
    sandbox_status,
    execution_time: execution_time ?? Number(wall_time),
    tool_calls_made: tool_calls_made ?? 0,
  };
  const failure = failureOf(ended, maxCalls);
  return (
    failure === undefined ? { status: "completed", ...fields } : { status: "error", ...fields, ...failure }
  ) as ProgrammaticResponse;
}

interface Failure {
  error_type: ErrorType;
  error: string;
}

const KILLED = { TO: "timeout", ML: "memory_limit" } as const;

/** Why a program counts as failed; clients match these texts. */
function failureOf(
  { programmatic_fault: fault, status, code, signal }: EndedRound,
  maxCalls: number,
): Failure | undefined {
  if (fault !== undefined) return { error_type: fault.type, error: faultText(fault, maxCalls) };
  if (status === "TO" || status === "ML") {
    return {
      error_type: KILLED[status],
      error: status === "TO" ? "Time limit exceeded" : "Out of memory",
    };
  }
  if ((status === "OL" || status === "EL") && signal === "SIGKILL") {
    return {
      error_type: "output_limit",
      error: `${status === "OL" ? "stdout" : "stderr"} length exceeded`,
    };
  }
  if (signal !== null) return { error_type: "signal", error: `Sandbox exited with code ${code}` };
  if (code !== 0) return { error_type: "nonzero_exit", error: `Sandbox exited with code ${code}` };
  return undefined;
}
