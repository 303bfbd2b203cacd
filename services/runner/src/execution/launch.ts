/** The beginning of every execution: opens a jail, describes the program, stages its files and starts it. */
import { JailError, type JailRun } from "@svc/jail-client";
import { jailLimits, type RunLimits } from "../admission/limits.ts";
import type { RunGateway } from "../gateway.ts";
import { despiteSpoiledCopies } from "../inputs/source.ts";
import type { CountedExecution } from "../metrics.ts";
import {
  asRestoreFailure,
  despiteFailedRestore,
  type StagedProgram,
  stageProgram,
} from "../session-state/stage.ts";
import { type Program, type ProgramSession, replaced } from "./program.ts";
import type { RunEvents } from "./run-events.ts";
import type { ExecuteDeps } from "./types.ts";

export interface Launched {
  jail: JailRun;
  staged: StagedProgram;
  /** Only for a run of a session; says also whether the restore failed. */
  session?: ProgramSession;
  /** Path of the program's entry file. */
  entry: string;
  /** Directory of the workspace that holds the compiled program; nothing in it is an output. */
  build?: string;
  /** When the request's work began and when the program was started, on the monotonic clock. */
  beganMs: number;
  startedMs: number;
}

export interface Launch {
  program: Program;
  limits: RunLimits;
  run: RunGateway;
  /** Its abort ends the jail. */
  life: AbortSignal;
  counted: Pick<CountedExecution, "enter" | "runs">;
  /** Further environment variables, which depend on the jail. */
  environment?: (jail: JailRun) => readonly string[];
  /** Called last before the start. */
  prepare?: (jail: JailRun) => Promise<void>;
  /** Receives the start of the program and its output. */
  events?: Pick<RunEvents, "started" | "output"> | undefined;
  /** jaild sends output as it comes. */
  isLive?: boolean;
}

export function launch(what: Launch, deps: ExecuteDeps): Promise<Launched> {
  const beganMs = performance.now();
  const stage = (program: Program) =>
    despiteSpoiledCopies((withCopies) => attempt({ ...what, program }, deps, withCopies, beganMs));
  return despiteFailedRestore(what.program, stage, (err) =>
    deps.log.warn({ err, request_id: what.run.requestId }, "restoring the state of a session failed"),
  );
}

async function attempt(
  what: Launch,
  deps: ExecuteDeps,
  withCopies: boolean,
  beganMs: number,
): Promise<Launched> {
  const { program, limits, run, life, counted, environment, prepare, events, isLive } = what;
  const { config, gateway, inputs, metrics, jails } = deps;
  counted.enter("setup");
  const jail = await metrics.watchSetup(() => jails.open(program, life));
  try {
    counted.enter("stage_in");
    jail.describe(program.argv, replaced(program.env, environment?.(jail) ?? []), jailLimits(limits));
    if (isLive) jail.tellOutput();
    if (program.stdin !== undefined) await jail.stdin(program.stdin);
    const concurrency = config.SANDBOX_PRIME_CONCURRENCY;
    const maxBytes = config.SVC_SESSION_STATE_MAX_BYTES;
    const staging = { gateway, inputs, withCopies, run, jail, concurrency, maxBytes };
    const staged = await stageProgram(program, staging);
    await prepare?.(jail);
    counted.runs(limits.wallMs);
    await jail.start(events && ((stream, bytes) => events.output(stream, bytes)));
    events?.started();
    metrics.started(jail.startedWarm);
    const build = program.compile && { build: program.compile.build };
    const session = program.session && { session: program.session };
    const entry = program.contents[0]?.path ?? "";
    return { jail, staged, entry, ...session, ...build, beganMs, startedMs: performance.now() };
  } catch (error) {
    jail.close();
    // A jaild that still runs from before an update of the runner sends output only at the end. `prepare` must not run twice.
    const isOfOldJail = error instanceof JailError && error.kind === "protocol" && !error.started;
    if (isLive && isOfOldJail && prepare === undefined)
      return attempt({ ...what, isLive: false }, deps, withCopies, beganMs);
    throw asRestoreFailure(error, program);
  }
}
