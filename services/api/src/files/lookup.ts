/**
 * Finds the records of referenced files, which decide whether a caller may use them. It reads the cache once, then asks the file server
 * for records that are not cached. A lost cache makes it slower, not wrong.
 */
import { DELETED_RECORD, isId, type ObjectRecord, objectRecordKey, objectRecordSchema } from "@svc/contracts";
import { type InnerClient, mapLimited, type Redis } from "@svc/service-kit";
import { FileStorage } from "./file-storage.ts";

export interface ObjectReference {
  id: string;
  storage_session_id: string;
}

/** Records in the order of the references; undefined for files that do not exist. Throws when the file server is unreachable. */
export type RecordLookup = (
  refs: readonly ObjectReference[],
  requestId: string,
) => Promise<(ObjectRecord | undefined)[]>;

const PARALLEL_QUESTIONS = 16;

export function createRecordLookup(deps: { redis: Redis; fileServer: InnerClient }): RecordLookup {
  const storage = new FileStorage(deps.fileServer);
  return async (refs, requestId) => {
    if (refs.length === 0) return [];
    const cached = await fromCache(deps.redis, refs);
    const found: (ObjectRecord | undefined)[] = [];
    const unknown: number[] = [];
    for (const [index, text] of cached.entries()) {
      const ref = refs[index];
      if (ref === undefined || !isId(ref.id) || !isId(ref.storage_session_id)) continue;
      if (text === DELETED_RECORD) continue;
      const record = text === null ? undefined : parseRecord(text);
      if (record === undefined) unknown.push(index);
      else found[index] = record;
    }
    await mapLimited(unknown, PARALLEL_QUESTIONS, async (index) => {
      const ref = refs[index] as ObjectReference;
      found[index] = await storage.record({ session: ref.storage_session_id, file: ref.id }, { requestId });
    });
    return refs.map((_ref, index) => found[index]);
  };
}

async function fromCache(redis: Redis, refs: readonly ObjectReference[]): Promise<(string | null)[]> {
  const nothing = refs.map(() => null);
  if (redis.status !== "ready") return nothing;
  const keys = refs.map((ref) => objectRecordKey(ref.storage_session_id, ref.id));
  return redis.mget(keys).catch(() => nothing);
}

function parseRecord(text: string): ObjectRecord | undefined {
  try {
    return objectRecordSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
