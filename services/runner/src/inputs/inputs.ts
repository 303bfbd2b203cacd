/**
 * Stages the files of a program into the jail: contents of the request and referenced inputs, all or nothing. A file that cannot be fetched fails
 * the request, and the error names it.
 */
import {
  directoriesOf,
  dirkeepDirectory,
  fileNameProblem,
  isDirkeep,
  WIDEST_NAME_LIMITS,
} from "@svc/contracts";
import type { JailRun } from "@svc/jail-client";
import type { Program, Reference } from "../execution/program.ts";
import type { GatewayClient, RunGateway } from "../gateway.ts";
import type { StagedInput } from "../outputs/outputs.ts";
import type { Batch } from "./batch.ts";
import { OwnPaths } from "./own-paths.ts";
import type { InputSource, OpenInput } from "./source.ts";

export interface StagingDeps {
  gateway: GatewayClient;
  inputs: InputSource;
  /** Whether inputs may come from the runner's copies. */
  withCopies: boolean;
  run: RunGateway;
  jail: JailRun;
  concurrency: number;
  /** Whether to make the directories that storage lists for its sessions as well; by default, yes. */
  directories?: boolean;
}

/** What is staged under which index, and which paths that takes. */
export interface StagedFiles {
  staged: readonly StagedInput[];
  /** Index by path. They are still to be made, once, with the mode that the state of a session may give them. */
  directories: ReadonlyMap<string, number>;
  own: OwnPaths;
}

/** Stages everything of the request except its directories. */
export async function stageAll(program: Program, deps: StagingDeps): Promise<StagedFiles> {
  const staged: StagedInput[] = [];
  const directories = new Map<string, number>();
  const nextIndex = () => staged.length;
  const sessions = sessionsOf(deps.directories === false ? [] : program.references);
  const batch = deps.inputs.batch(deps.run, program.references, [...sessions.keys()], deps.withCopies);
  const extraDirectories = listDirkeeps(program, sessions, batch, deps);
  extraDirectories.catch(() => undefined);
  for (const { path, bytes } of program.contents) {
    const index = nextIndex();
    staged.push({ index, readOnly: false });
    await deps.jail.file({ index, path, size: bytes.length, readOnly: false }, bytes);
  }
  for (const { path, bytes } of program.made) {
    const index = nextIndex();
    staged.push({ index, readOnly: false });
    await deps.jail.file({ index, path, size: bytes.length, readOnly: false, mode: 0o755 }, bytes);
  }
  for (const file of program.directories) {
    const index = nextIndex();
    const path = dirkeepDirectory(file.name);
    // The workspace itself cannot be removed.
    staged.push({ index, readOnly: path === "", ref: refOf(file) });
    if (path !== "") directories.set(path, index);
  }
  for await (const [file, input] of fetchAhead(program.references, batch, deps)) {
    const index = nextIndex();
    staged.push({ index, readOnly: input.readOnly, ref: refOf(file) });
    const { size, readOnly, bytes } = input;
    try {
      await deps.jail.file({ index, path: file.name, size, readOnly }, bytes);
    } finally {
      input.close();
    }
  }
  for (const directory of [...program.plainDirectories, ...(await extraDirectories)]) {
    if (directories.has(directory)) continue;
    directories.set(directory, nextIndex());
    staged.push({ index: nextIndex(), readOnly: false });
  }
  const files = [...program.contents, ...program.made].map(({ path }) => path);
  const paths = [...files, ...program.references.map(({ name }) => name)];
  return { staged, directories, own: new OwnPaths(paths, [...directories.keys()]) };
}

export function refOf(file: Reference) {
  const { name, id, storage_session_id, entity_id } = file;
  return { name, id, storage_session_id, ...(entity_id == null ? {} : { entity_id }) };
}

/** Opens up to `concurrency` inputs at once and hands them out in order; unread ones wait in their sockets. */
async function* fetchAhead(
  files: readonly Reference[],
  batch: Batch,
  { inputs, withCopies, run, concurrency }: StagingDeps,
): AsyncGenerator<[Reference, OpenInput]> {
  const open = (file: Reference) => {
    const input = inputs.open(run, file, withCopies, batch);
    input.catch(() => undefined);
    return input;
  };
  const prefetched: Promise<OpenInput>[] = files.slice(0, concurrency).map(open);
  try {
    for (const [at, file] of files.entries()) {
      const input = await (prefetched.shift() as Promise<OpenInput>);
      const following = files[at + concurrency];
      if (following !== undefined) prefetched.push(open(following));
      yield [file, input];
    }
  } finally {
    for (const left of prefetched) left.then((input) => input.close()).catch(() => undefined);
  }
}

/** One file of each session that the run reads, by session. */
function sessionsOf(references: readonly Reference[]): ReadonlyMap<string, Reference> {
  return new Map(references.map((file) => [file.storage_session_id, file]));
}

/** Directories for the `.dirkeep` files of the sessions. */
async function listDirkeeps(
  { contents, references }: Program,
  sessions: ReadonlyMap<string, Reference>,
  batch: Batch,
  { gateway, run }: StagingDeps,
): Promise<string[]> {
  const namesIn = async ([session, file]: [string, Reference]) =>
    (await batch.directories(session)) ?? (await gateway.list(run, file)).map(({ name }) => name);
  const listings = await Promise.all([...sessions].map(namesIn));
  const files = new Set([...contents.map(({ path }) => path), ...references.map(({ name }) => name)]);
  const crossesFile = (directory: string) =>
    [directory, ...directoriesOf(directory)].some((path) => files.has(path));
  return listings
    .flat()
    .filter((name) => isDirkeep(name) && fileNameProblem(name, WIDEST_NAME_LIMITS) === undefined)
    .map(dirkeepDirectory)
    .filter((directory) => directory !== "" && !crossesFile(directory));
}
