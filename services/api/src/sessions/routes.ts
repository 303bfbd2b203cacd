/** The routes for the caller's persistent sessions: list all, list and download the files of one, delete one. */
import type { Readable } from "node:stream";
import {
  namespaceOf,
  type Principal,
  ServiceError,
  sessionFileQuerySchema,
  sessionFilesSchema,
  sessionIdSchema,
  sessionListSchema,
} from "@svc/contracts";
import {
  clientGone,
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  storeCall,
} from "@svc/service-kit";
import type { SessionRecord, SessionStore } from "@svc/session-store";
import { z } from "zod";
import { leaveStalled } from "../files/download.ts";
import type { CallContext } from "../files/file-storage.ts";
import { fileList, fileOf, type StateReader } from "./files.ts";

export interface SessionRoutesDeps extends StateReader {
  /** Undefined: sessions are not kept. */
  sessions: SessionStore | undefined;
  principalOf: (request: FastifyRequest) => Principal;
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
      const list = await fileList(found.snapshot, namespace, contextOf(request, reply), deps);
      reply.type("application/json; charset=utf-8");
      if (typeof list !== "string") sendSlowly(list, reply);
      return reply.send(list as never);
    },
  );
  app.get(
    "/v1/sessions/:id/file",
    {
      schema: {
        tags: ["sessions"],
        summary: "Download a file of a persistent session",
        operationId: "sessionFile",
        params: sessionIdSchema,
        querystring: sessionFileQuerySchema,
        response: { 200: bytesOfFile },
      },
    },
    async (request, reply) => {
      const { store, namespace } = of(request, deps);
      const found = await storeCall(() => store.find(namespace, request.params.id));
      if (found === undefined) throw unknownSession();
      const { snapshot } = found;
      const context = contextOf(request, reply);
      const file = snapshot && (await fileOf(snapshot, request.query.name, namespace, context, deps));
      if (file === undefined) throw new ServiceError("file_not_found", "The session has no such file.");
      sendSlowly(file.bytes, reply);
      reply.headers({ ...AS_BYTES, "content-length": file.size });
      return reply.send(file.bytes as never);
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

/** Closes the connection when the stream fails or the client stops reading. */
function sendSlowly(stream: Readable, reply: FastifyReply): void {
  stream.once("error", (error) => reply.raw.destroy(error));
  leaveStalled(reply);
}

const bytesOfFile = {
  description: "The bytes of the file.",
  content: { "application/octet-stream": { schema: z.string().meta({ format: "binary" }) } },
};
const AS_BYTES = {
  "content-type": "application/octet-stream",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
};

function contextOf(request: FastifyRequest, reply: FastifyReply): CallContext {
  const signal = clientGone(reply, new Error("the client closed the connection"));
  return { requestId: request.id, signal };
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
