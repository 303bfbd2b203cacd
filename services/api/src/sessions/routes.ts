/** The caller's persistent sessions: list, files of one, deletion. */
import {
  isReservedName,
  namespaceOf,
  type Principal,
  ServiceError,
  type Snapshot,
  sessionFilesSchema,
  sessionIdSchema,
  sessionListSchema,
  snapshotNamespaceOf,
} from "@svc/contracts";
import { clientGone, type FastifyRequest, type HttpServer, storeCall } from "@svc/service-kit";
import { DamagedArchive, decompress, readArchive } from "@svc/session-archive";
import type { SessionRecord, SessionStore } from "@svc/session-store";
import { z } from "zod";
import type { CallContext, FileStorage } from "../files/file-storage.ts";

export interface SessionRoutesDeps {
  /** Undefined: sessions are not kept. */
  sessions: SessionStore | undefined;
  storage: FileStorage;
  principalOf: (request: FastifyRequest) => Principal;
  /** Largest state, in bytes. */
  maxBytes: number;
}

export function persistentSessionRoutes(app: HttpServer, deps: SessionRoutesDeps): void {
  app.get(
    "/v1/sessions",
    {
      schema: {
        tags: ["sessions"],
        summary: "List the caller's persistent sessions",
        operationId: "listSessions",
        response: { 200: sessionListSchema },
      },
    },
    async (request) => {
      const { store, namespace } = of(request, deps);
      return { sessions: (await storeCall(() => store.list(namespace))).map(shown) };
    },
  );
  app.get(
    "/v1/sessions/:id/files",
    {
      schema: {
        tags: ["sessions"],
        summary: "List the files of a persistent session",
        operationId: "listSessionFiles",
        params: sessionIdSchema,
        response: { 200: sessionFilesSchema },
      },
    },
    async (request, reply) => {
      const { store, namespace } = of(request, deps);
      const found = await storeCall(() => store.find(namespace, request.params.id));
      if (found === undefined) throw unknownSession();
      if (found.snapshot === undefined) return { files: [] };
      const signal = clientGone(reply, new Error("the client closed the connection"));
      return { files: await filesOf(found.snapshot, namespace, { requestId: request.id, signal }, deps) };
    },
  );
  app.delete(
    "/v1/sessions/:id",
    {
      schema: {
        tags: ["sessions"],
        summary: "Delete a persistent session",
        operationId: "deleteSession",
        params: sessionIdSchema,
        response: { 204: z.undefined().describe("The session is gone.") },
      },
    },
    async (request, reply) => {
      const { store, namespace } = of(request, deps);
      if (!(await storeCall(() => store.remove(namespace, request.params.id)))) throw unknownSession();
      return reply.code(204).send();
    },
  );
}

const unknownSession = () => new ServiceError("file_not_found", "There is no such session.");

function of(request: FastifyRequest, { sessions: store, principalOf }: SessionRoutesDeps) {
  if (store === undefined) {
    throw new ServiceError(
      "not_found",
      "Persistent sessions are off here. The operator turns them on with SVC_PERSIST_SESSIONS=true.",
    );
  }
  return { store, namespace: namespaceOf(principalOf(request), { kind: "user" }) };
}

const iso = (ms: number) => new Date(ms).toISOString();

function shown({ id, hint, created_at, last_used_at, expires_at, language_last, snapshot }: SessionRecord) {
  return {
    id,
    ...(hint === undefined ? {} : { hint }),
    created_at: iso(created_at),
    last_used_at: iso(last_used_at),
    expires_at: iso(expires_at),
    size: snapshot?.size ?? 0,
    language_last,
  };
}

async function filesOf(
  snapshot: Snapshot,
  namespace: string,
  context: CallContext,
  { storage, maxBytes }: SessionRoutesDeps,
) {
  const body = await open(snapshot, namespace, context, storage);
  const files: { name: string; size: number; mode: number }[] = [];
  try {
    for await (const { body: bytes, ...member } of readArchive(decompress(body, maxBytes))) {
      for await (const _ of bytes);
      if (member.type === "file" && !isReservedName(member.path))
        files.push({ name: member.path, size: member.size, mode: member.mode });
    }
  } catch (cause) {
    throw cause instanceof DamagedArchive ? damaged(cause) : unread(cause);
  } finally {
    body.destroy();
  }
  return files.sort((left, right) => (left.name < right.name ? -1 : 1));
}

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
