/** Stages a program's files and, before the start of a run of a session, the state of that session. */
import { JailError } from "@svc/jail-client";
import type { Program } from "../execution/program.ts";
import { type StagedFiles, type StagingDeps, stageAll } from "../inputs/inputs.ts";
import { SpoiledCopy } from "../inputs/source.ts";
import { type Restored, restore } from "./restore.ts";

/** The state of a session cannot be brought back. A new jail can be staged without it. */
export class RestoreFailed extends Error {}

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
  if (snapshot === undefined) return { ...files, restored: undefined };
  const { inputs, run, withCopies, jail, maxBytes } = deps;
  try {
    const input = await inputs.open(run, snapshot, withCopies);
    try {
      const nextIndex = files.staged.length;
      const restored = await restore(input.bytes, jail, files.own, { nextIndex, maxBytes });
      return { ...files, staged: [...files.staged, ...restored.staged], restored };
    } finally {
      input.close();
    }
  } catch (error) {
    run.signal.throwIfAborted();
    if (error instanceof SpoiledCopy || isOfTheJail(error)) throw error;
    throw new RestoreFailed("the state of the session cannot be brought back", { cause: error });
  }
}

/** What breaks whatever is staged. */
export const isOfTheJail = (error: unknown): boolean =>
  error instanceof JailError && (error.kind === "gone" || error.kind === "setup");

/** Runs `stage` with the program; once more, with the program without its snapshot, when that cannot be brought back. */
export async function despiteFailedRestore<T>(
  program: Program,
  stage: (program: Program) => Promise<T>,
  onFailure: (error: unknown) => void,
): Promise<T> {
  try {
    return await stage(program);
  } catch (error) {
    if (!(error instanceof RestoreFailed) || program.session === undefined) throw error;
    onFailure(error.cause ?? error);
    const { snapshot: _, ...session } = program.session;
    return stage({ ...program, session: { ...session, restoreFailed: true } });
  }
}
