/** Stages a program's files and, for a session's run, the state of the session, before the program starts. */
import { ServiceError } from "@svc/contracts";
import { JailError } from "@svc/jail-client";
import { LargeArchive } from "@svc/session-archive";
import type { Program, ProgramSession } from "../execution/program.ts";
import { type StagedFiles, type StagingDeps, stageAll } from "../inputs/inputs.ts";
import { SpoiledCopy } from "../inputs/source.ts";
import { type Restored, restore } from "./restore.ts";

/** The state of a session cannot be restored. A new jail can be staged without it. */
export class RestoreFailed extends Error {}

const RESTORE_ATTEMPTS = 2;

/** The note on standard error for a state that could not be restored. */
export const restoreNotes = (session: ProgramSession | undefined): string[] =>
  session?.restoreFailed ? ["The previous session could not be restored; this run started empty"] : [];

export interface StateDeps extends StagingDeps {
  /** Largest state, in bytes. */
  maxBytes: number;
}

export interface StagedProgram extends StagedFiles {
  restored: Restored | undefined;
}

export async function stageProgram(program: Program, deps: StateDeps): Promise<StagedProgram> {
  const files = await stageAll(program, deps);
  const snapshot = program.session?.snapshot;
  if (program.session !== undefined) deps.jail.listEverything();
  const { inputs, run, withCopies, jail, maxBytes } = deps;
  if (snapshot === undefined) {
    for (const [path, index] of files.directories) await jail.directory(index, path);
    return { ...files, restored: undefined };
  }
  try {
    const input = await inputs.open(run, snapshot, withCopies);
    try {
      const restored = await restore(input.bytes, jail, files, maxBytes);
      return { ...files, staged: [...files.staged, ...restored.staged], restored };
    } finally {
      input.close();
    }
  } catch (error) {
    run.signal.throwIfAborted();
    if (error instanceof SpoiledCopy || isNoFaultOfState(error) || isAway(error)) throw error;
    throw new RestoreFailed("the state of the session cannot be brought back", { cause: error });
  }
}

/**
 * Failures that are not the state's fault: the jail broke, has no room for the state beside the request's files, or the state is larger than now
 * allowed. The worker then repeats the run, without the state if it does not fit.
 */
const isNoFaultOfState = (error: unknown): boolean =>
  error instanceof LargeArchive ||
  (error instanceof JailError && ["gone", "setup", "inputs_do_not_fit"].includes(error.kind));

/** The error of a jail that was not started: jaild may report a problem with a restored file as late as the start. */
export function asRestoreFailure(error: unknown, { session }: Program): unknown {
  const isOfState = session?.snapshot !== undefined && error instanceof JailError && !isNoFaultOfState(error);
  return isOfState
    ? new RestoreFailed("the jail does not take the state of the session", { cause: error })
    : error;
}

/** Storage cannot be reached: nothing is known of the state. The worker repeats the run, as for other inputs. */
const isAway = (error: unknown): boolean =>
  error instanceof ServiceError && error.code === "storage_unavailable";

/**
 * Runs `stage` with the program. When the snapshot cannot be restored, repeats it once, since a
 * component may have died meanwhile; then runs it without the snapshot.
 */
export async function despiteFailedRestore<T>(
  program: Program,
  stage: (program: Program) => Promise<T>,
  onFailure: (error: unknown) => void,
): Promise<T> {
  const { session } = program;
  if (session?.snapshot === undefined) return stage(program);
  for (let attempt = 0; attempt < RESTORE_ATTEMPTS; attempt++) {
    try {
      return await stage(program);
    } catch (error) {
      if (!(error instanceof RestoreFailed)) throw error;
      onFailure(error.cause ?? error);
    }
  }
  const { snapshot: _, ...failed } = session;
  return stage({ ...program, session: { ...failed, restoreFailed: true } });
}
