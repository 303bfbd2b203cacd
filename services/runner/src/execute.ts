/**
 * One execution on the runner: lease a slot, stage, run, store outputs, answer. Every failure of ours is a ServiceError;
 * a program's failure is an answer. The caller's signal, the deadline and shutdown all kill the run through one signal.
 */
import { constants } from "node:os";
import { deadlinesFor, type ExecuteRequest, type ExecuteResponse, newId, ServiceError } from "@svc/contracts";
import { JailError, JailRun, type RunOutcome } from "@svc/jail-client";
import { type Config, invalidRequest, type Log } from "@svc/service-kit";
import { type Ending, endingOf } from "./ending.ts";
import type { GatewayClient, RunGateway } from "./gateway.ts";
import { stageAll } from "./inputs.ts";
import { type LimitOverrides, limitsFor, type RunLimits } from "./limits.ts";
import { decodeListing } from "./listing.ts";
import type { RunnerMetrics } from "./metrics.ts";
import { omittedFields, omittedNotes } from "./omitted.ts";
import { planOutputs, type StagedInput } from "./outputs.ts";
import { type Program, programOf } from "./program.ts";
import type { Runtimes } from "./runtimes.ts";
import type { Slots } from "./slots.ts";
import { captured, withNotes } from "./text.ts";
import { storeOutputs } from "./uploads.ts";

export interface ExecuteDeps {
  config: Config;
  overrides: LimitOverrides;
  runtimes: Runtimes;
  slots: Slots;
  gateway: GatewayClient;
  metrics: RunnerMetrics;
}

export interface Call {
  requestId: string;
  /** Aborted when the caller goes away or the runner stops. */
  signal: AbortSignal;
  log: Log;
}

interface Measured {
  setup_ms: number;
  run_ms: number;
  collect_ms: number;
}

const round = (ms: number) => Math.round(ms * 1000) / 1000;

export async function execute(
  request: ExecuteRequest,
  call: Call,
  deps: ExecuteDeps,
): Promise<ExecuteResponse> {
  const runtime = deps.runtimes.find(request.language, request.version ?? "*");
  const limits = limitsFor(deps.config, deps.overrides, { ...request, language: runtime.language });
  const program = programOf(request, runtime, {
    maxLength: deps.config.SANDBOX_MAX_PATH_LENGTH,
    maxDepth: deps.config.SANDBOX_MAX_NESTING_DEPTH,
  });
  const deadline = AbortSignal.timeout(deadlinesFor(limits.wallMs, deps.config).runner);
  const signal = AbortSignal.any([call.signal, deadline]);
  const end = deps.metrics.began(runtime.language);
  try {
    const release = await deps.slots.lease(signal);
    try {
      const { answer, ending } = await runLeased(request, program, limits, { ...call, signal }, deps);
      end(ending.outcome);
      return { ...answer, language: runtime.language, version: runtime.version };
    } finally {
      release();
    }
  } catch (error) {
    end(error instanceof ServiceError && error.status < 500 ? "bad_request" : "execution_error");
    if (deadline.aborted) throw new ServiceError("deadline_exceeded", undefined, { cause: error });
    throw asServiceError(error);
  }
}

async function runLeased(
  request: ExecuteRequest,
  program: Program,
  limits: RunLimits,
  call: Call,
  deps: ExecuteDeps,
): Promise<{ answer: Omit<ExecuteResponse, "language" | "version">; ending: Ending }> {
  const began = performance.now();
  const run: RunGateway = {
    grant: request.egress_grant ?? "",
    requestId: call.requestId,
    signal: call.signal,
  };
  const jail = await deps.metrics.watchSetup(() =>
    JailRun.open(deps.config.SANDBOX_JAIL_SOCKET, call.signal),
  );
  try {
    jail.describe(program.argv, program.env, jailLimits(limits));
    if (program.stdin !== undefined) await jail.stdin(program.stdin);
    const concurrency = deps.config.SANDBOX_PRIME_CONCURRENCY;
    const staged = await stageAll(program, { gateway: deps.gateway, run, jail, concurrency });
    await jail.start();
    const started = performance.now();
    const outcome = await jail.outcome();
    const ended = performance.now();
    // The notice of the start can arrive late; the jail's own clock cannot.
    const runMs = Math.max(ended - started, outcome.end.wallUs / 1000);
    if (outcome.end.execErrno === constants.errno.E2BIG) {
      throw invalidRequest([{ path: "args", problem: "are too long for a program, all together" }]);
    }
    const ending = endingOf(outcome.end, limits.outputCap);
    const outputs = await collect(outcome, staged, request, { jail, run }, call, deps);
    const timings: Measured = {
      setup_ms: round(ended - began - runMs),
      run_ms: round(runMs),
      collect_ms: round(performance.now() - ended),
    };
    return { answer: answerOf(request, outcome, ending, limits, outputs, timings), ending };
  } finally {
    jail.close();
  }
}

function jailLimits(limits: RunLimits) {
  return {
    wallMs: limits.wallMs,
    cpuMs: 0,
    memoryBytes: limits.memoryBytes,
    processes: limits.processes,
    openFiles: limits.openFiles,
    fileBytes: limits.fileBytes,
    stdoutCap: limits.outputCap,
    stderrCap: limits.outputCap,
    killFactor: limits.outputKillFactor,
  };
}

async function collect(
  outcome: RunOutcome,
  staged: readonly StagedInput[],
  request: ExecuteRequest,
  { jail, run }: { jail: JailRun; run: RunGateway },
  call: Call,
  { config, gateway }: ExecuteDeps,
) {
  const plan = planOutputs(decodeListing(outcome.listing), staged, {
    maxFiles: config.SANDBOX_MAX_OUTPUT_FILES,
    maxFileBytes: Math.min(config.SANDBOX_MAX_FILE_SIZE, config.EGRESS_GATEWAY_MAX_FILE_BYTES),
    maxTotalBytes: config.EXECUTION_MANIFEST_MAX_UPLOAD_BYTES,
    names: { maxLength: config.SANDBOX_MAX_PATH_LENGTH, maxDepth: config.SANDBOX_MAX_NESTING_DEPTH },
  });
  const report = await storeOutputs(plan.uploads, {
    gateway,
    run,
    jail,
    outputSession: request.output_session_id ?? request.session_id ?? "",
    concurrency: config.SANDBOX_UPLOAD_CONCURRENCY,
    onFailure: (error) =>
      call.log.warn({ err: error, request_id: call.requestId }, "an output was not stored"),
  });
  return { plan, report, omitted: [...report.omitted, ...plan.omitted] };
}

function answerOf(
  request: ExecuteRequest,
  { end, stdout, stderr }: RunOutcome,
  ending: Ending,
  limits: RunLimits,
  { plan, report, omitted }: Awaited<ReturnType<typeof collect>>,
  timings: Measured,
): Omit<ExecuteResponse, "language" | "version"> {
  const notes = [...omittedNotes(omitted, plan.unlisted), ...ending.notes];
  return {
    session_id: request.session_id ?? newId(),
    stdout: captured(stdout, end.stdoutTotal, limits.outputCap),
    stderr: withNotes(captured(stderr, end.stderrTotal, limits.outputCap), notes),
    files: [...report.files, ...plan.inherited.map((ref) => ({ ...ref, inherited: true }))],
    code: ending.code,
    signal: ending.signal,
    message: ending.message,
    status: ending.status,
    wall_time: round(end.wallUs / 1000),
    cpu_time: round(end.cpuUs / 1000),
    memory: end.memoryPeak,
    timings,
    session_state_persisted: false,
    session_state_restore_failed: false,
    ...(plan.deleted.length > 0 ? { deleted_files: plan.deleted } : {}),
    ...omittedFields(omitted, plan.unlisted),
    ...(report.failed > 0 ? { artifact_delivery: delivery(report) } : {}),
  };
}

function delivery({ attempted, failed }: { attempted: number; failed: number }) {
  return {
    code: "artifact_delivery_failed" as const,
    status: failed === attempted ? ("failed" as const) : ("partial" as const),
    attempted,
    delivered: attempted - failed,
    failed,
  };
}

function asServiceError(error: unknown): unknown {
  if (!(error instanceof JailError)) return error;
  if (error.kind === "inputs_do_not_fit" && !error.started) {
    return new ServiceError("invalid_file_reference", "The input files do not fit into the workspace.", {
      details: [{ path: "files", problem: "do not fit into the workspace" }],
      cause: error,
    });
  }
  if (!error.started) return new ServiceError("sandbox_setup_failed", undefined, { cause: error });
  return new ServiceError("sandbox_execution_failed", undefined, { status: 500, cause: error });
}
