/**
 * Reads small objects and the names of sessions' `.dirkeep` files into one answer of limited size. What cannot be read or does not fit is left
 * out, and the reader requests it separately.
 */
import {
  type BatchedFile,
  type BatchRequest,
  type InputBatch,
  isDirkeep,
  MAX_BATCH_BYTES,
  MAX_BATCHED_FILE_BYTES,
  MAX_DIRKEEPS,
  type ObjectRecord,
} from "@svc/contracts";
import type { OpenObject } from "@svc/object-store";
import { mapLimited } from "@svc/service-kit/map-limited";
import type { Objects } from "./objects.ts";

const PARALLEL = 8;

export async function readBatch(objects: Objects, { files, directories }: BatchRequest): Promise<InputBatch> {
  const room = new Room(MAX_BATCH_BYTES);
  const records: ObjectRecord[] = [];
  const read = await mapLimited(files, PARALLEL, ({ storage_session_id: session, id: file }) =>
    orNothing(async () => {
      const object = await objects.openOneOfMany({ session, file }, undefined);
      records.push(object.record);
      return contentOf(object, room);
    }),
  );
  const bySession = Map.groupBy(records, ({ storage_session_id }) => storage_session_id);
  const listed = await mapLimited(directories, PARALLEL, (session) =>
    orNothing(async () => {
      const names = await objects.names(session, bySession.get(session) ?? []);
      const kept = names.filter(isDirkeep).slice(0, MAX_DIRKEEPS);
      const bytes = kept.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(kept));
      return room.takes(bytes) ? kept : undefined;
    }),
  );
  await objects.remember(records);
  return { files: read, directories: listed };
}

/** Bytes that are still free in the answer. */
class Room {
  #bytes: number;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  takes(bytes: number): boolean {
    if (bytes > this.#bytes) return false;
    this.#bytes -= bytes;
    return true;
  }
}

async function contentOf(object: OpenObject, room: Room): Promise<BatchedFile | undefined> {
  const { size, etag, readOnly } = object.record;
  if (size > MAX_BATCHED_FILE_BYTES || !room.takes(size)) {
    await object.close();
    return undefined;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of object.read()) chunks.push(chunk as Buffer);
  const [first] = chunks;
  return { etag, readOnly, content: first?.length === size ? first : Buffer.concat(chunks) };
}

/** Hides any failure: the reader requests the missing item separately and then gets the error. */
async function orNothing<T>(read: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await read();
  } catch {
    return undefined;
  }
}
