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
import { type FastifyRequest, type HttpServer, storeCall } from "@svc/service-kit";
import { DamagedArchive, decompress, readArchive } from "@svc/session-archive";
import type { SessionRecord, SessionStore } from "@svc/session-store";
import { z } from "zod";
import type { FileStorage } from "../files/file-storage.ts";

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
    async (request) => {
      const { store, namespace } = of(request, deps);
      const found = await storeCall(() => store.find(namespace, request.params.id));
      if (found === undefined) throw unknownSession();
      const { snapshot } = found;
      return { files: snapshot === undefined ? [] : await filesOf(snapshot, namespace, request.id, deps) };
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
  { storage_session_id: session, id: file }: Snapshot,
  namespace: string,
  requestId: string,
  { storage, maxBytes }: SessionRoutesDeps,
) {
  const context = { requestId };
  const response = await storage.download(
    "GET",
    { session, file },
    snapshotNamespaceOf(namespace),
    {},
    context,
  );
  const files: { name: string; size: number; mode: number }[] = [];
  try {
    for await (const { body, ...member } of readArchive(decompress(response.body, maxBytes))) {
      for await (const _ of body);
      if (member.type === "file" && !isReservedName(member.path))
        files.push({ name: member.path, size: member.size, mode: member.mode });
    }
  } catch (cause) {
    const isDamaged = cause instanceof DamagedArchive;
    throw new ServiceError(isDamaged ? "internal_error" : "storage_unavailable", undefined, { cause });
  } finally {
    response.body.destroy();
  }
  return files.sort((left, right) => (left.name < right.name ? -1 : 1));
}
