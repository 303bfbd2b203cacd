/**
 * The rounds of programs with tools: each runs from a start or a resume to a pause or to the end, holds a slot meanwhile,
 * and has its own deadline. The program is killed when its caller disconnects during a round; a pause needs no caller.
 */
import {
  deadlinesFor,
  faultText,
  OUTPUT_STREAMS,
  type PausedResponse,
  type ProgrammaticRun,
  type ResumeRequest,
  type RoundResponse,
  ServiceError,
  type Tool,
  toolFiles,
  toolSchema,
} from "@svc/contracts";
import type { JailRun } from "@svc/jail-client";
import { DeadlineSignal, invalidRequest } from "@svc/service-kit";
import { z } from "zod";
import { limitsFor, type RunLimits, usedLimits } from "../admission/limits.ts";
import type { Admitted } from "../admission/manifest.ts";
import { unfinished } from "../execution/decode-output.ts";
import { destinationOf, inputLimits } from "../execution/execute.ts";
import { endingOf, faultEnding } from "../execution/exit-status.ts";
import { asServiceError, finish, refuseUnexecutable } from "../execution/finish.ts";
import { launch } from "../execution/launch.ts";
import { programOf } from "../execution/program.ts";
import { RunEvents, type TellEvent } from "../execution/run-events.ts";
import type { Runtime } from "../execution/runtimes.ts";
import type { Call, Destination, ExecuteDeps } from "../execution/types.ts";
import { countFault, isCancelled } from "../run-line.ts";
import { CallHistory } from "./call-history.ts";
import type { ProgramRegistry } from "./program-registry.ts";
import type { ToolCallClient } from "./tool-call-client.ts";
import type { ToolDirectories } from "./tool-directory.ts";
import { ToolProgram } from "./tool-program.ts";

/** How long fetching results from the tool call server may take. */
const RESULTS_MS = 10_000;

export interface ProgrammaticDeps extends ExecuteDeps {
  programs: ProgramRegistry<StartedProgram>;
  directories: ToolDirectories;
  client: ToolCallClient;
  /** This runner may be stopped after any answer, so the calls of a pause are recorded before the answer. */
  mayEnd: boolean;
}

/** A program with its runtime, and the limits and events of its current round. It keeps the hash seed of its first process. */
class StartedProgram extends ToolProgram {
  /** Limits of the current round. */
  limits: RunLimits;
  readonly runtime: Runtime;
  hashSeed: number;
  /** Events of the current round; absent if its caller does not want output while the program runs. */
  events: RunEvents | undefined;

  constructor(
    limits: RunLimits,
    runtime: Runtime,
    hashSeed: number,
    options: ConstructorParameters<typeof ToolProgram>[0],
  ) {
    super(options);
    this.limits = limits;
    this.runtime = runtime;
    this.hashSeed = hashSeed;
  }
}

/** What one round works with. */
interface Round {
  program: StartedProgram;
  to: Destination;
  call: Call;
}

/** Makes the first round of a program, or of its replay. */
export async function startProgram(
  { request, principal }: Admitted,
  ptc: ProgrammaticRun,
  call: Call,
  deps: ProgrammaticDeps,
): Promise<RoundResponse> {
  const { config, overrides, slots } = deps;
  const runtime = deps.runtimes.findProgrammatic(request.language, request.version ?? "*");
  const limits = limitsFor(config, overrides, { ...request, language: runtime.language });
  const memory = { run: limits.memoryBytes, compile: limits.memoryBytes };
  const source = programOf(request, runtime, inputLimits(config), memory);
  const tools = toolsOf(ptc);
  const history = historyOf(ptc, tools);
  const program = new StartedProgram(limits, runtime, ptc.hash_seed, {
    executionId: ptc.execution_id,
    principal,
    round: ptc.round,
    requestId: call.requestId,
    callbackToken: ptc.callback_token,
    tools: tools.map(({ name }) => name),
    files: filesFor(runtime.language, tools, config.EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES),
    history,
    maxCalls: ptc.max_calls + (ptc.history?.length ?? 0),
    maxCallBytes: config.EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES,
    quiescence: { settleMs: config.PTC_SETTLE_MS, settleMaxMs: config.PTC_SETTLE_MAX_MS },
    directories: deps.directories,
    client: deps.client,
    counted: deps.metrics.began(runtime.language, call.trace),
  });
  program.events = call.tell && new RunEvents(call.tell, runtime);
  const events = {
    started: () => program.events?.started(),
    output: (...output: Parameters<RunEvents["output"]>) => program.events?.output(...output),
  };
  deps.programs.begin(program);
  return makeRound(program, limits.wallMs, request, call, deps, async ({ to, call: { signal } }) => {
    const release = await slots.lease(signal);
    try {
      const { life, counted } = program;
      const { run } = to;
      const isLive = call.tell !== undefined;
      const environment = ({ zygoteWord }: { zygoteWord: number | undefined }) => {
        if (ptc.mode === "live" && zygoteWord !== undefined) program.hashSeed = zygoteWord;
        return toolEnvironment(program.hashSeed, config.SANDBOX_TOOL_SOCKET);
      };
      const prepare = (jail: JailRun) => program.prepare(jail);
      program.started(
        await launch(
          { program: source, limits, run, life, counted, environment, prepare, events, isLive },
          deps,
        ),
      );
      return release;
    } catch (error) {
      release();
      throw error;
    }
  });
}

/** Makes a further round of a paused program. */
export async function resumeProgram(
  request: ResumeRequest,
  call: Call,
  deps: ProgrammaticDeps,
): Promise<RoundResponse> {
  const { config, overrides, programs, slots } = deps;
  const { execution_id, round, answered_call_ids, answers = [] } = request.ptc;
  const program = programs.take(execution_id, round);
  const { language } = program.runtime;
  const { wallMs } = limitsFor(config, overrides, { language, run_timeout: request.run_timeout });
  program.counted.resumed(call.trace);
  return makeRound(program, wallMs, request, call, deps, async ({ call: { signal } }) => {
    program.answer(answers);
    if (!(await program.haveResults(answered_call_ids, RESULTS_MS))) {
      throw new ServiceError("execution_not_found");
    }
    const release = await slots.lease(signal, { goesOn: true });
    try {
      program.counted.runs(wallMs);
      program.events = call.tell && goingOn(program, call.tell);
      program.resume(wallMs);
      program.limits = { ...program.limits, wallMs };
      return release;
    } catch (error) {
      release();
      throw error;
    }
  });
}

/** The events of a further round. Output until now is skipped: it was sent before, or not asked for. */
function goingOn({ runtime, sofar }: StartedProgram, tell: TellEvent): RunEvents {
  const events = new RunEvents(tell, runtime);
  for (const stream of OUTPUT_STREAMS) events.passOver(stream, sofar[stream]);
  events.started();
  return events;
}

/** `begin` leases a slot and lets the program run; the slot is released at the end of the round. */
async function makeRound(
  program: StartedProgram,
  wallMs: number,
  request: Parameters<typeof destinationOf>[0],
  call: Call,
  deps: ProgrammaticDeps,
  begin: (round: Round) => Promise<() => void>,
): Promise<RoundResponse> {
  const within = new DeadlineSignal(call.signal, deadlinesFor(wallMs, deps.config).runner);
  const { signal } = within;
  const scope = { ...call, signal };
  const round = { program, to: destinationOf(request, scope), call: scope };
  const abort = () => program.kill(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    const answer = await inSlot(begin, round, deps);
    if ("paused" in answer && deps.mayEnd) await program.recorded();
    return answer;
  } catch (error) {
    if (isBusy(error) && program.pausedAtMs > 0 && !signal.aborted) {
      program.counted.paused();
      deps.programs.keep(program);
      throw error;
    }
    program.kill(error);
    deps.programs.end(program);
    countFault(program.counted, error, call.signal);
    if (within.isLate) throw new ServiceError("deadline_exceeded", undefined, { cause: error });
    if (isCancelled(call.signal)) throw call.signal.reason;
    throw asServiceError(error);
  } finally {
    program.events?.end();
    program.events = undefined;
    within.end();
    signal.removeEventListener("abort", abort);
  }
}

async function inSlot(
  begin: (round: Round) => Promise<() => void>,
  round: Round,
  deps: ProgrammaticDeps,
): Promise<RoundResponse> {
  const release = await begin(round);
  try {
    return (await round.program.run()) === "waits" ? pause(round, deps) : await end(round, deps);
  } finally {
    release();
  }
}

/** No slot was free: a paused program stays where it is. */
const isBusy = (error: unknown) => error instanceof ServiceError && error.code === "runner_busy";

/** Keeps the paused program, unless every round is a replay. */
function pause({ program, to }: Round, { config, programs }: ProgrammaticDeps): PausedResponse {
  const { wallUs, stdout, stderr } = program.sofar;
  const { limits } = program;
  const answer: PausedResponse = {
    paused: true,
    session_id: to.sessionId,
    pending_call_ids: program.outstanding,
    pending_calls: program.outstandingCalls,
    stdout: unfinished(stdout.subarray(0, limits.outputCap)),
    stderr: unfinished(stderr.subarray(0, limits.outputCap)),
    execution_time: wallUs / 1000,
    tool_calls_made: program.callsMade,
    runner_url: config.SANDBOX_ADVERTISED_URL,
    hash_seed: program.hashSeed,
    language: program.runtime.language,
    version: program.runtime.version,
    limits: usedLimits(limits),
  };
  program.counted.paused();
  program.pausedAtMs = performance.now();
  programs.keep(program);
  if (config.PTC_MODE === "replay") programs.discard(program.executionId);
  return answer;
}

async function end({ program, to, call }: Round, deps: ProgrammaticDeps): Promise<RoundResponse> {
  const { launched, outcome, fault, limits, runtime, counted } = program;
  counted.enter("collect");
  if (outcome === undefined) throw new Error("the program has not ended");
  const endedMs = performance.now();
  refuseUnexecutable(outcome);
  const ending =
    fault === undefined
      ? endingOf(outcome.end, limits)
      : faultEnding(outcome.end, limits, faultText(fault, deps.config.PTC_MAX_CALLS));
  const runMs = outcome.end.wallUs / 1000;
  const setupMs = launched.startedMs - launched.beganMs;
  const answer = await finish(
    { launched, outcome, ending, runMs, endedMs, setupMs, limits, to, counted, log: call.log },
    deps,
  );
  program.close();
  deps.programs.end(program);
  counted.ended(ending.outcome);
  return {
    ...answer,
    language: runtime.language,
    version: runtime.version,
    limits: usedLimits(limits),
    execution_time: runMs,
    tool_calls_made: program.callsMade,
    ...(fault === undefined ? {} : { programmatic_fault: fault }),
  };
}

function toolsOf(ptc: ProgrammaticRun): Tool[] {
  return attempt("tools_json", () => z.array(toolSchema).parse(JSON.parse(ptc.tools_json)));
}

function filesFor(language: string, tools: readonly Tool[], maxBytes: number): Record<string, string> {
  const definitions = attempt("tools_json", () =>
    tools.map(({ name, description, parameters_json }) => ({
      name,
      description,
      parameters: parameters_json === undefined ? undefined : JSON.parse(parameters_json),
    })),
  );
  return toolFiles(language === "python" ? "python" : "bash", definitions, maxBytes);
}

function historyOf({ max_calls, history }: ProgrammaticRun, tools: readonly Tool[]): CallHistory {
  const names = tools.map(({ name }) => name);
  return attempt(
    "history",
    () =>
      new CallHistory({
        tools: names,
        maxCalls: max_calls,
        ...(history === undefined ? {} : { recorded: history }),
      }),
  );
}

function attempt<T>(field: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw invalidRequest([{ path: `ptc.${field}`, problem: "is not what a worker sends" }]);
  }
}

/** The environment of a program with tools. The hash seed makes Python's sets of texts repeat their order. */
function toolEnvironment(hashSeed: number, toolSocket: string): string[] {
  return [`SANDBOX_TOOL_SOCKET=${toolSocket}`, `PYTHONHASHSEED=${hashSeed}`];
}
