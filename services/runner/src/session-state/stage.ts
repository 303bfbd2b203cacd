/** Stages a program's files and, before the start of a run of a session, the state of that session. */
import { ServiceError } from "@svc/contracts";
import { JailError } from "@svc/jail-client";
import { LargeArchive } from "@svc/session-archive";
import type { Program, ProgramSession } from "../execution/program.ts";
import { type StagedFiles, type StagingDeps, stageAll } from "../inputs/inputs.ts";
import { SpoiledCopy } from "../inputs/source.ts";
import { type Restored, restore } from "./restore.ts";

/** The state of a session cannot be brought back. A new jail can be staged without it. */
export class RestoreFailed extends Error {}

const RESTORE_ATTEMPTS = 2;

/** What standard error says of a state that could not be brought back. */
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
 * The jail broke, or has no room for the state beside the request's files, or the state is larger than one may be by now: then the
 * worker has the run repeated without it.
 */
const isNoFaultOfState = (error: unknown): boolean =>
  error instanceof LargeArchive ||
  (error instanceof JailError && ["gone", "setup", "inputs_do_not_fit"].includes(error.kind));

/** The error of a jail that is not started: what it says of a restored file may come as late as the start. */
export function asRestoreFailure(error: unknown, { session }: Program): unknown {
  const isOfState = session?.snapshot !== undefined && error instanceof JailError && !isNoFaultOfState(error);
  return isOfState
    ? new RestoreFailed("the jail does not take the state of the session", { cause: error })
    : error;
}

/** Storage cannot be reached: nothing is known of the state, and the worker has the run repeated, as for other inputs. */
const isAway = (error: unknown): boolean =>
  error instanceof ServiceError && error.code === "storage_unavailable";

/**
 * Runs `stage` with the program; once more when its snapshot cannot be brought back, since a component may have died on the way; then
 * without it.
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
