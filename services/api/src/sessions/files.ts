/** The files of a session's state: their names, and the bytes of one. The state is read as a stream; a damaged one is refused. */
import { Readable } from "node:stream";
import { isReservedName, ServiceError, type Snapshot, snapshotNamespaceOf } from "@svc/contracts";
import { DamagedArchive, decompress, readArchive } from "@svc/session-archive";
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

export async function filesOf(
  snapshot: Snapshot,
  namespace: string,
  context: CallContext,
  { storage, maxBytes }: StateReader,
): Promise<StateFile[]> {
  const state = await open(snapshot, namespace, context, storage);
  const files: StateFile[] = [];
  try {
    for await (const { body, ...member } of readArchive(decompress(state, maxBytes))) {
      for await (const _ of body);
      if (member.type === "file" && !isReservedName(member.path))
        files.push({ name: member.path, size: member.size, mode: member.mode });
    }
  } catch (cause) {
    throw refused(cause);
  } finally {
    state.destroy();
  }
  return files.sort((left, right) => (left.name < right.name ? -1 : 1));
}

/** One file, once it is found; undefined where the state has none of this name. Its bytes must be read or destroyed. */
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
        // What is behind the file is not read.
        bytes.once("close", () => state.destroy());
        return { size: member.size, bytes };
      }
      for await (const _ of body);
    }
  } catch (cause) {
    state.destroy();
    throw refused(cause);
  }
  state.destroy();
  return undefined;
}

const refused = (cause: unknown) => (cause instanceof DamagedArchive ? damaged(cause) : unread(cause));

const ANEW = "Delete the session to begin anew.";
const damaged = (cause: unknown) =>
  new ServiceError("input_unavailable", `The state of the session is missing or damaged. ${ANEW}`, { cause });
/** Storage was away, or found while it sent the state that its bytes are others than were stored. */
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
