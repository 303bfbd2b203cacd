/**
 * The transition from created to running: builds a program from its request and makes its first round. The program is not stored before
 * its first pause: its caller still waits for the start, and a start whose caller disconnects is cancelled.
 */
import { randomInt } from "node:crypto";
import {
  type ErrorCode,
  namespaceOf,
  newId,
  type Principal,
  type ProgrammaticResponse,
  ServiceError,
} from "@svc/contracts";
import { bodyBytes, bodyTooLarge, type FastifyReply, type FastifyRequest } from "@svc/service-kit";
import type { ExecDeps } from "../exec/asked.ts";
import { clientLeft } from "../exec/client.ts";
import { authoriseRefs } from "../exec/refs.ts";
import { execRules, startLimit } from "../exec/rules.ts";
import { noteRun } from "../request-log.ts";
import type { RunStream } from "../streams/run-stream.ts";
import { traceOf } from "../tracing.ts";
import { type CancelDeps, cancelProgram } from "./cancel.ts";
import { completeProgram } from "./completion.ts";
import { MAX_FROM_TOP } from "./expiry.ts";
import { endFirstRound, forgetProgram, labelOf, rememberStart } from "./labels.ts";
import { type PauseDeps, pauseProgram } from "./pause.ts";
import { parseStart } from "./request.ts";
import { type Attempt, factsOfEnd, type RoundEnd } from "./round-jobs.ts";
import type { Program } from "./state.ts";
import { bytesOf } from "./store.ts";

export interface StartDeps
  extends PauseDeps,
    CancelDeps,
    Pick<ExecDeps, "runtimes" | "feed" | "principalOf" | "planLimitsOf" | "lookupRecords" | "holdingSeat"> {}

const HASH_SEEDS = 2 ** 32;
/** Failures after which the program may have started. With other codes it has not. */
const AFTER_START: ReadonlySet<ErrorCode> = new Set([
  "sandbox_execution_failed",
  "execution_timeout",
  "internal_error",
]);

export async function handleStart(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: StartDeps,
  stream: RunStream | undefined,
): Promise<ProgrammaticResponse> {
  const { config, cancellations, principalOf, holdingSeat } = deps;
  const principal = principalOf(request);
  if (bodyBytes(request) > startLimit(config)) throw bodyTooLarge(startLimit(config));
  const [program] = await Promise.all([
    programOf(request, principal, deps),
    deps.store.refuseWhenFull(namespaceOf(principal, { kind: "user" })),
  ]);
  if (bytesOf(program) > config.PTC_MAX_STATE_BYTES) {
    deps.metrics.oversize.inc({ kind: "state" });
    throw new ServiceError("state_too_large");
  }
  const { execution_id, label, language } = program;
  const trace = traceOf(request)?.context;
  if (trace !== undefined) program.trace = trace;
  noteRun(request, { language, exec_id: execution_id });
  let unwanted = clientLeft(reply);
  let paused = false;
  try {
    // The label is stored only when a cancellation can reach the round.
    const answer = await cancellations.during(execution_id, async (cancelled) => {
      if (label !== undefined) await rememberStart(deps, principal, label, execution_id);
      unwanted = AbortSignal.any([unwanted, cancelled]);
      const onEnd = (end: RoundEnd) => noteRun(request, factsOfEnd(end));
      const attempt = { program, round: 1, requestId: request.id, trace: program.trace, stream };
      try {
        const ended = await holdingSeat(request, (place) =>
          firstRound(deps, { ...attempt, place, signal: unwanted }, onEnd),
        );
        paused = ended.status === "tool_call_required";
        return ended;
      } finally {
        // A cancellation that found no record leaves the program to this replica. It may also be the reason why the round failed.
        if (label !== undefined) await cancellations.look([execution_id]);
      }
    });
    if (paused && unwanted.aborted) await cancelProgram(deps, execution_id, request.id);
    unwanted.throwIfAborted();
    return answer;
  } finally {
    if (label !== undefined) {
      endFirstRound(deps, execution_id);
      if (!paused) forgetProgram(deps, principal, [label], execution_id);
    }
  }
}

/** Makes the first round, with a retry from the top. Aborting the signal cancels the program. */
async function firstRound(
  deps: PauseDeps,
  first: Omit<Attempt, "number">,
  onEnd: (end: RoundEnd) => void,
): Promise<ProgrammaticResponse> {
  const { jobs, exchanges } = deps;
  const { program, requestId, signal } = first;
  const id = program.execution_id;
  let hasRun = false;
  for (let number = 1; ; number++) {
    try {
      const end = await jobs.fromTop({ ...first, number }, { calls: 0, runMs: 0 });
      hasRun = true;
      onEnd(end);
      return "ended" in end
        ? await completeProgram(deps, id, {}, end, requestId)
        : await pauseProgram(deps, program, {}, end, requestId);
    } catch (error) {
      const code = error instanceof ServiceError ? error.code : undefined;
      const isBroken = code === "sandbox_execution_failed";
      hasRun ||= code !== undefined && AFTER_START.has(code);
      if (isBroken && number < MAX_FROM_TOP && !signal.aborted) continue;
      exchanges.end(id, undefined, requestId);
      signal.throwIfAborted();
      throw hasRun ? withExecution(error, program) : error;
    }
  }
}

async function programOf(request: FastifyRequest, principal: Principal, deps: StartDeps): Promise<Program> {
  const { config, runtimes } = deps;
  const parsed = parseStart(request.body, {
    ...execRules(config, await runtimes.get()),
    maxTools: config.PTC_MAX_TOOLS,
  });
  const files =
    parsed.files.length > 0
      ? authoriseRefs(parsed, await deps.lookupRecords(parsed.files, request.id), principal)
      : [];
  const label = labelOf(request.headers);
  const { run_memory_limit } = deps.planLimitsOf(request);
  return {
    v: 1,
    execution_id: newId(),
    session_id: newId(),
    principal,
    output_namespace: namespaceOf(principal, { kind: "user" }),
    hash_seed: randomInt(HASH_SEEDS),
    ...parsed,
    files,
    ...(run_memory_limit === undefined ? {} : { run_memory_limit }),
    ...(label === undefined ? {} : { label }),
  };
}

/** Adds the execution's session to a failure of the service that happens after the program started. */
export function withExecution(error: unknown, { session_id }: Program): unknown {
  if (!(error instanceof ServiceError) || error.status < 500) return error;
  return new ServiceError(error.code, error.message, {
    status: error.status === 500 ? 502 : error.status,
    ...(error.headers === undefined ? {} : { headers: error.headers }),
    ...(error.details === undefined ? {} : { details: error.details }),
    extra: { ...error.extra, status: "error", error_type: "infrastructure", session_id },
    cause: error,
  });
}
