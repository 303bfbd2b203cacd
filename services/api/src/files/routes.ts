/**
 * The public file routes: parse, call, reply. Whose files a request may touch follows from the authenticated principal and
 * the kind it names; all else looks like a file that does not exist, with one answer after one time for all causes.
 */
import { setTimeout as delay } from "node:timers/promises";
import {
  batchUploadResponseSchema,
  deletedFileSchema,
  errorBodySchema,
  fileDetailSchema,
  fileListSchema,
  fileMetadataSchema,
  fileOwnerQuerySchema,
  fileParamsSchema,
  isId,
  namespaceOf,
  type Principal,
  ServiceError,
  sessionParamsSchema,
  uploadFormSchema,
  uploadResponseSchema,
} from "@svc/contracts";
import type {
  Config,
  FastifyReply,
  FastifyRequest,
  HttpServer,
  InnerClient,
  Log,
  Redis,
  Registry,
} from "@svc/service-kit";
import { z } from "zod";
import { serveFile } from "./download.ts";
import { FileStorage } from "./file-storage.ts";
import { createRecordLookup, type RecordLookup } from "./lookup.ts";
import { countDownload, outcomeOf, transferMetrics } from "./metrics.ts";
import { type OwnerFields, ownerOf } from "./owner.ts";
import { receiveUpload } from "./upload.ts";
import { batchAnswer, type UploadOutcome } from "./upload-answer.ts";

export interface FileRoutesDeps {
  config: Config;
  log: Log;
  /** Client of the file server; `unreachable` must be `storage_unavailable`. */
  fileServer: InnerClient;
  redis: Redis;
  principalOf: (request: FastifyRequest) => Principal;
  registry: Registry;
}

/** Longer than any way to a 404 takes, so that its duration tells nothing about the cause. */
const NOT_FOUND_MS = 10;

const errors = { "4xx": errorBodySchema, "5xx": errorBodySchema };
const fileBytes = {
  description: "The bytes of the file",
  content: { "application/octet-stream": { schema: z.string().meta({ format: "binary" }) } },
};

/** Registers the routes. Returns the lookup of file records, for routes that take file references. */
export async function fileRoutes(app: HttpServer, deps: FileRoutesDeps): Promise<RecordLookup> {
  await app.register(async (scope) => {
    const routes = scope as unknown as HttpServer;
    routes.removeAllContentTypeParsers();
    routes.addContentTypeParser("*", (_request, _payload, done) => done(null));
    routes.addHook("preValidation", async (request) => checkIds(request));
    routes.addHook("onError", async (_request, reply, error) => {
      if ((error as unknown as ServiceError).code !== "file_not_found") return;
      await delay(Math.max(0, NOT_FOUND_MS - reply.elapsedTime));
    });
    const storage = new FileStorage(deps.fileServer);
    const metrics = transferMetrics(deps.registry);
    uploadRoutes(routes, deps, storage, metrics);
    downloadRoutes(routes, deps, storage, metrics);
    sessionRoutes(routes, deps, storage);
  });
  return createRecordLookup(deps);
}

function checkIds(request: FastifyRequest): void {
  for (const id of Object.values(request.params as Record<string, unknown>)) {
    if (!isId(id)) throw new ServiceError("invalid_id");
  }
}

type Metrics = ReturnType<typeof transferMetrics>;

function uploadRoutes(app: HttpServer, deps: FileRoutesDeps, storage: FileStorage, metrics: Metrics): void {
  const receive = async (request: FastifyRequest, keep: "all" | "some"): Promise<UploadOutcome> => {
    try {
      const outcome = await receiveUpload(deps.config, deps.log, storage, request, {
        principal: deps.principalOf(request),
        maxFileBytes: deps.config.MAX_FILE_SIZE,
        keep,
      });
      for (const part of outcome.parts) metrics.uploaded(part.ok ? "success" : outcomeOf(part.error));
      return outcome;
    } catch (error) {
      metrics.uploaded(request.raw.errored ? "aborted" : outcomeOf(error));
      throw error;
    }
  };
  const form = {
    consumes: ["multipart/form-data"],
    body: uploadFormSchema,
    tags: ["files"],
  };
  /** The form is read as a stream, so its schema only describes it. */
  const validatorCompiler = () => (value: unknown) => ({ value });

  app.post(
    "/v1/upload",
    {
      schema: { ...form, summary: "Upload files", response: { 200: uploadResponseSchema, ...errors } },
      validatorCompiler,
    },
    async (request) => {
      const { session, stored } = await receive(request, "all");
      return { message: "success" as const, storage_session_id: session, files: [...stored] };
    },
  );
  app.post(
    "/v1/upload/batch",
    {
      schema: {
        ...form,
        summary: "Upload files, keeping those that can be stored",
        response: {
          200: batchUploadResponseSchema,
          "4xx": z.union([errorBodySchema, batchUploadResponseSchema]),
          "5xx": z.union([errorBodySchema, batchUploadResponseSchema]),
        },
      },
      validatorCompiler,
    },
    async (request, reply: FastifyReply) => {
      const { status, body } = batchAnswer(await receive(request, "some"), request.id);
      return reply.code(status).send(body);
    },
  );
}

function namespaceFor(deps: FileRoutesDeps, request: FastifyRequest): string {
  return namespaceOf(deps.principalOf(request), ownerOf(request.query as OwnerFields));
}

function addressOf(request: FastifyRequest): { session: string; file: string } {
  const { session_id, fileId } = request.params as { session_id: string; fileId: string };
  return { session: session_id, file: fileId };
}

function downloadRoutes(app: HttpServer, deps: FileRoutesDeps, storage: FileStorage, metrics: Metrics): void {
  for (const method of ["GET", "HEAD"] as const) {
    app.route({
      method,
      url: "/v1/download/:session_id/:fileId",
      exposeHeadRoute: false,
      schema: {
        tags: ["files"],
        summary: method === "GET" ? "Download a file" : "Headers of a download",
        params: fileParamsSchema,
        querystring: fileOwnerQuerySchema,
        response:
          method === "GET"
            ? { 200: fileBytes, 206: fileBytes, ...errors }
            : { 200: z.null().meta({ description: "Headers only" }) },
      },
      handler: async (request: FastifyRequest, reply: FastifyReply) => {
        countDownload(metrics, reply);
        return serveFile(storage, addressOf(request), namespaceFor(deps, request), request, reply);
      },
    });
  }
}

function sessionRoutes(app: HttpServer, deps: FileRoutesDeps, storage: FileStorage): void {
  const query = fileOwnerQuerySchema;
  app.get(
    "/v1/sessions/:session_id/objects/:fileId",
    {
      schema: {
        tags: ["files"],
        summary: "Metadata of a file",
        params: fileParamsSchema,
        querystring: query,
        response: { 200: fileMetadataSchema, ...errors },
      },
    },
    async (request) =>
      storage.metadata<z.infer<typeof fileMetadataSchema>>(addressOf(request), namespaceFor(deps, request), {
        requestId: request.id,
      }),
  );
  app.get(
    "/v1/files/:session_id",
    {
      schema: {
        tags: ["files"],
        summary: "List the files of a storage session",
        params: sessionParamsSchema,
        querystring: query.extend({ detail: fileDetailSchema.default("simple") }),
        response: { 200: fileListSchema, ...errors },
      },
    },
    async (request) =>
      storage.list<z.infer<typeof fileListSchema>>(
        request.params.session_id,
        namespaceFor(deps, request),
        request.query.detail,
        { requestId: request.id },
      ),
  );
  app.delete(
    "/v1/files/:session_id/:fileId",
    {
      schema: {
        tags: ["files"],
        summary: "Delete a file",
        params: fileParamsSchema,
        querystring: query,
        response: { 200: deletedFileSchema, ...errors },
      },
    },
    async (request) => {
      const { session, file } = addressOf(request);
      await storage.delete({ session, file }, namespaceFor(deps, request), { requestId: request.id });
      return { message: "File deleted successfully" as const, session_id: session, fileId: file };
    },
  );
}
