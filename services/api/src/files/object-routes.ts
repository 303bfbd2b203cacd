/** The routes for metadata, listing, deletion and usage of stored files. */
import {
  deletedFileSchema,
  fileDetailSchema,
  fileListSchema,
  fileMetadataSchema,
  fileOwnerQuerySchema,
  fileParamsSchema,
  namespaceOf,
  sessionParamsSchema,
  snapshotNamespaceOf,
  usageSchema,
} from "@svc/contracts";
import type { HttpServer } from "@svc/service-kit";
import type { z } from "zod";
import { addressOf, namespaceFor } from "./addressed.ts";
import type { FileRoutesDeps } from "./deps.ts";
import type { FileStorage } from "./file-storage.ts";

export function objectRoutes(app: HttpServer, deps: FileRoutesDeps, storage: FileStorage): void {
  const query = fileOwnerQuerySchema;
  app.get(
    "/v1/sessions/:session_id/objects/:fileId",
    {
      schema: {
        tags: ["files"],
        summary: "Metadata of a file",
        operationId: "fileMetadata",
        params: fileParamsSchema,
        querystring: query,
        response: { 200: fileMetadataSchema },
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
        operationId: "listFiles",
        params: sessionParamsSchema,
        querystring: query.extend({ detail: fileDetailSchema.default("simple") }),
        response: { 200: fileListSchema },
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
  app.get(
    "/v1/usage",
    {
      schema: {
        tags: ["files"],
        summary: "Quotas, and what is used of them",
        operationId: "usage",
        response: { 200: usageSchema },
      },
    },
    async (request) => {
      const account = namespaceOf(deps.principalOf(request), { kind: "user" });
      const context = { requestId: request.id };
      const [files, states] = await Promise.all([
        storage.usage(account, context),
        storage.usage(snapshotNamespaceOf(account), context),
      ]);
      return { quotas: [...files.quotas, ...states.quotas] };
    },
  );
  app.delete(
    "/v1/files/:session_id/:fileId",
    {
      schema: {
        tags: ["files"],
        summary: "Delete a file",
        operationId: "deleteFile",
        params: fileParamsSchema,
        querystring: query,
        response: { 200: deletedFileSchema },
      },
    },
    async (request) => {
      const { session, file } = addressOf(request);
      await storage.delete({ session, file }, namespaceFor(deps, request), { requestId: request.id });
      return { message: "File deleted successfully" as const, session_id: session, fileId: file };
    },
  );
}
