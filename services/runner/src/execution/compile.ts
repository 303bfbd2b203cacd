/**
 * Makes the program of a compiled language: the sources are staged into a jail of their own, the compiler runs there
 * under its own limits, and what it leaves in the build directory is taken into memory for the jail of the run. The
 * compiler is no more trusted than a program: user code steers it.
 */
import { buffer } from "node:stream/consumers";
import { ServiceError } from "@svc/contracts";
import { JailError, JailRun, type RunOutcome } from "@svc/jail-client";
import { jailLimits, type RunLimits } from "../admission/limits.ts";
import type { RunGateway } from "../gateway.ts";
import { refOf } from "../inputs/inputs.ts";
import { despiteSpoiledCopies } from "../inputs/source.ts";
import type { CountedExecution } from "../metrics.ts";
import { decodeListing } from "../outputs/listing.ts";
import { NOT_LISTED_IN_TIME } from "../outputs/omitted.ts";
import {
  asRestoreFailure,
  despiteFailedRestore,
  restoreNotes,
  type StateDeps,
  stageProgram,
} from "../session-state/stage.ts";
import { captured, withNotes } from "./decode-output.ts";
import { compileEndingOf, compileFailure, type Ending } from "./exit-status.ts";
import { refuseUnexecutable } from "./finish.ts";
import type { Compilation, Program } from "./program.ts";
import type { Destination, ExecuteDeps, RunAnswer } from "./types.ts";

/** Compiled programs lie in the runner's memory between the two jails. */
const MAX_PROGRAM_BYTES = 64 << 20;

export interface Failed {
  answer: RunAnswer;
  ending: Ending;
}

/** The program with its compiled files, or the answer that says why there are none. */
export async function compile(
  program: Program,
  limits: RunLimits,
  to: Destination,
  counted: Pick<CountedExecution, "enter">,
  deps: ExecuteDeps,
): Promise<{ program: Program } | Failed> {
  if (program.compile === undefined) return { program };
  const beganMs = performance.now();
  try {
    const compilation = program.compile;
    const stage = async (staged: Program) => ({
      staged,
      ...(await despiteSpoiledCopies((withCopies) =>
        runCompiler(staged, compilation, { limits, to, counted }, deps, withCopies),
      )),
    });
    const { staged, outcome, made, ending } = await despiteFailedRestore(program, stage, (err) =>
      deps.log.warn({ err, request_id: to.run.requestId }, "restoring the state of a session failed"),
    );
    if (ending === undefined) return { program: { ...staged, made } };
    return { answer: failedAnswer(staged, outcome, ending, { limits, to, beganMs }), ending };
  } catch (error) {
    // Whatever broke: the program itself has not started.
    if (error instanceof JailError && error.started) {
      throw new ServiceError("sandbox_setup_failed", undefined, { cause: error });
    }
    throw error;
  }
}

interface Compiled {
  outcome: RunOutcome;
  made: Program["made"];
  ending: Ending | undefined;
}

interface Compiling {
  limits: RunLimits;
  to: Destination;
  counted: Pick<CountedExecution, "enter">;
}

async function runCompiler(
  program: Program,
  compilation: Compilation,
  { limits, to: { run }, counted }: Compiling,
  deps: ExecuteDeps,
  withCopies: boolean,
): Promise<Compiled> {
  const { config, metrics } = deps;
  const { build } = compilation;
  counted.enter("setup");
  const jail = await metrics.watchSetup(() => JailRun.open(config.SANDBOX_JAIL_SOCKET, run.signal));
  try {
    counted.enter("stage_in");
    jail.describe(compilation.argv, compilation.env, jailLimits(limits));
    try {
      const { staged } = await stageProgram(program, stagingOf(jail, run, withCopies, deps));
      await jail.directory(staged.length, build);
      counted.enter("setup", "jail.compile");
      await jail.start();
    } catch (error) {
      throw asRestoreFailure(error, program);
    }
    const outcome = await jail.outcome();
    refuseUnexecutable(outcome);
    const ending = compileEndingOf(outcome.end, limits);
    if (ending !== undefined) return { outcome, made: [], ending };
    return { outcome, ...(await harvest(jail, outcome, build)) };
  } finally {
    jail.close();
  }
}

/** The compiler does not see directories that only storage knows. */
function stagingOf(
  jail: JailRun,
  run: RunGateway,
  withCopies: boolean,
  { config, gateway, inputs }: ExecuteDeps,
): StateDeps {
  const concurrency = config.SANDBOX_PRIME_CONCURRENCY;
  const maxBytes = config.SVC_SESSION_STATE_MAX_BYTES;
  return { gateway, inputs, withCopies, run, jail, concurrency, maxBytes, directories: false };
}

async function harvest(
  jail: JailRun,
  { listing }: RunOutcome,
  build: string,
): Promise<Pick<Compiled, "made" | "ending">> {
  // The listing may lack compiled files.
  if (listing.timedOut)
    throw new ServiceError("sandbox_setup_failed", undefined, { cause: NOT_LISTED_IN_TIME });
  const files = decodeListing(listing).files.filter(({ path }) => path.startsWith(`${build}/`));
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (size > MAX_PROGRAM_BYTES) {
    return { made: [], ending: compileFailure(1, ["The compiled program is larger than 64 MiB"]) };
  }
  const made: Program["made"] = [];
  for (const { path, number } of files) {
    const fetched = await jail.fetch(number);
    if (fetched === undefined) throw new ServiceError("sandbox_setup_failed");
    made.push({ path, bytes: await buffer(fetched.body) });
  }
  return { made, ending: undefined };
}

/** The program did not run: it took no time and no memory, and every input is unchanged. */
function failedAnswer(
  { references, directories, session }: Program,
  { end, stdout, stderr }: RunOutcome,
  ending: Ending,
  { limits, to, beganMs }: { limits: RunLimits; to: Destination; beganMs: number },
): Failed["answer"] {
  const inputs = [...references, ...directories].sort((a, b) => a.at - b.at);
  const { code, signal, message, status, notes } = ending;
  return {
    session_id: to.sessionId,
    stdout: captured(stdout, end.stdoutTotal, limits.outputCap),
    stderr: withNotes(captured(stderr, end.stderrTotal, limits.outputCap), [
      ...restoreNotes(session),
      ...notes,
    ]),
    files: inputs.map((input) => ({ ...refOf(input), inherited: true })),
    code,
    signal,
    message,
    status,
    wall_time: 0,
    cpu_time: 0,
    memory: 0,
    timings: { setup_ms: Math.round(performance.now() - beganMs), run_ms: 0, collect_ms: 0 },
    session_state_persisted: false,
    session_state_restore_failed: session?.restoreFailed ?? false,
  };
}
