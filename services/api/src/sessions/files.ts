/** Lists the files of a session's state and reads one of them. The state is read as a stream; a damaged state is an error. */
import { Readable } from "node:stream";
import { byteSize, isReservedName, ServiceError, type Snapshot, snapshotNamespaceOf } from "@svc/contracts";
import { DamagedArchive, decompress, LargeArchive, readArchive } from "@svc/session-archive";
import type { CallContext, FileStorage } from "../files/file-storage.ts";

export interface StateReader {
  storage: FileStorage;
  /** Largest state, in bytes. */
  maxBytes: number;
}

export interface StateFile {
  name: string;
  size: number;
  mode: number;
}

/** Yields the files in the order of the archive. */
async function* filesOf(
  snapshot: Snapshot,
  namespace: string,
  context: CallContext,
  { storage, maxBytes }: StateReader,
): AsyncGenerator<StateFile> {
  const state = await open(snapshot, namespace, context, storage);
  try {
    for await (const { body, ...member } of readArchive(decompress(state, maxBytes))) {
      for await (const _ of body);
      if (member.type === "file" && !isReservedName(member.path))
        yield { name: member.path, size: member.size, mode: member.mode };
    }
  } catch (cause) {
    throw refused(cause, maxBytes);
  } finally {
    state.destroy();
  }
}

async function* jsonOf(files: AsyncIterable<StateFile>): AsyncGenerator<string> {
  let before = '{"files":[';
  for await (const file of files) {
    yield before + JSON.stringify(file);
    before = ",";
  }
  yield before === "," ? "]}" : `${before}]}`;
}

/** This much of a list is buffered before it is sent, so that a failure until then can still be an error answer. */
const BEGINNING_CHARS = 2 ** 20;

/** The JSON of all files: a text, or, when it is long, a stream. The stream must be read or destroyed. */
export async function fileList(...of: Parameters<typeof filesOf>): Promise<string | Readable> {
  const json = jsonOf(filesOf(...of));
  let beginning = "";
  for (let step = await json.next(); !step.done; step = await json.next()) {
    beginning += step.value;
    if (beginning.length > BEGINNING_CHARS) return Readable.from(continued(beginning, json));
  }
  return beginning;
}

async function* continued(beginning: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield beginning;
  yield* rest;
}

/** One file; undefined when the state has no file of this name. Its bytes must be read or destroyed. */
export async function fileOf(
  snapshot: Snapshot,
  name: string,
  namespace: string,
  context: CallContext,
  { storage, maxBytes }: StateReader,
): Promise<{ size: number; bytes: Readable } | undefined> {
  if (isReservedName(name)) return undefined;
  const state = await open(snapshot, namespace, context, storage);
  const members = readArchive(decompress(state, maxBytes));
  try {
    for (let step = await members.next(); !step.done; step = await members.next()) {
      const { body, ...member } = step.value;
      if (member.type === "file" && member.path === name) {
        const bytes = Readable.from(body, { objectMode: false });
        // The rest of the archive is not read.
        bytes.once("close", () => state.destroy());
        return { size: member.size, bytes };
      }
      for await (const _ of body);
    }
  } catch (cause) {
    state.destroy();
    throw refused(cause, maxBytes);
  }
  state.destroy();
  return undefined;
}

function refused(cause: unknown, maxBytes: number): ServiceError {
  if (cause instanceof LargeArchive) return tooLarge(cause, maxBytes);
  return cause instanceof DamagedArchive ? damaged(cause) : unread(cause);
}

const ANEW = "Delete the session to begin anew.";
const damaged = (cause: unknown) =>
  new ServiceError("input_unavailable", `The state of the session is missing or damaged. ${ANEW}`, { cause });
/** The state is intact, but it was saved when the limit was larger. */
const tooLarge = (cause: unknown, maxBytes: number) => {
  const limit = `than the ${byteSize(maxBytes)} that are allowed now`;
  return new ServiceError("input_unavailable", `The state of the session is larger ${limit}.`, { cause });
};
/** The file server was unreachable, or found while it sent the state that the bytes differ from what was stored. */
const unread = (cause: unknown) =>
  new ServiceError(
    "storage_unavailable",
    `The state of the session cannot be read now. If that stays so: ${ANEW}`,
    {
      cause,
    },
  );

const MISSING_OR_DAMAGED: ReadonlySet<unknown> = new Set(["file_not_found", "internal_error"]);

async function open(
  { storage_session_id: session, id: file }: Snapshot,
  namespace: string,
  context: CallContext,
  storage: FileStorage,
) {
  try {
    const address = { session, file };
    return (await storage.download("GET", address, snapshotNamespaceOf(namespace), {}, context)).body;
  } catch (error) {
    throw error instanceof ServiceError && MISSING_OR_DAMAGED.has(error.code) ? damaged(error) : error;
  }
}
