/** From a round's end to the public answer: a pause, a completed program, or one that failed. Pure. */
import {
  type ErrorType,
  faultText,
  type OutputFile,
  type PausedResponse,
  type ProgrammaticFault,
  type ProgrammaticResponse,
  type RunStatus,
  type ToolCallRequired,
} from "@svc/contracts";

/** A worker's answer for a program that has ended: as for an execution, and what its tool calls came to. */
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
  [field: string]: unknown;
}

export interface OpenCall {
  id: string;
  name: string;
  input: Record<string, unknown>;
}

export function pauseAnswer(
  paused: PausedResponse,
  sessionId: string,
  calls: readonly OpenCall[],
  token: string,
): ToolCallRequired {
  return {
    status: "tool_call_required",
    session_id: sessionId,
    continuation_token: token,
    tool_calls: calls.map(({ id, name, input }) => ({ id, name, arguments: input, input })),
    partial_stdout: paused.stdout,
    partial_stderr: paused.stderr,
    tool_calls_made: paused.tool_calls_made,
    execution_time: paused.execution_time,
  };
}

/** `maxCalls`: how many tool calls an execution may make. */
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

/** Why a program counts as failed; the texts are what clients know. */
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
