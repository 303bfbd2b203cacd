/** The routes for GET and HEAD of a file's bytes. */
import { fileOwnerQuerySchema, fileParamsSchema } from "@svc/contracts";
import type { FastifyReply, FastifyRequest, HttpServer } from "@svc/service-kit";
import { z } from "zod";
import { addressOf, namespaceFor } from "./addressed.ts";
import type { FileRoutesDeps } from "./deps.ts";
import { serveFile } from "./download.ts";
import type { FileStorage } from "./file-storage.ts";
import { countDownload, type TransferMetrics } from "./metrics.ts";

const bytes = { "application/octet-stream": { schema: z.string().meta({ format: "binary" }) } };
const fileBytes = { description: "The bytes of the file.", content: bytes };
const fileRange = { description: "The bytes of the range.", content: bytes };
const unchanged = z.null().meta({ description: "The file is still the one that the caller has." });

export function downloadRoutes(
  app: HttpServer,
  deps: FileRoutesDeps,
  storage: FileStorage,
  metrics: TransferMetrics,
): void {
  for (const method of ["GET", "HEAD"] as const) {
    app.route({
      method,
      url: "/v1/download/:session_id/:fileId",
      exposeHeadRoute: false,
      schema: {
        tags: ["files"],
        summary: method === "GET" ? "Download a file" : "Headers of a download",
        operationId: method === "GET" ? "download" : "downloadHeaders",
        params: fileParamsSchema,
        querystring: fileOwnerQuerySchema,
        response:
          method === "GET"
            ? { 200: fileBytes, 206: fileRange, 304: unchanged }
            : { 200: z.null().meta({ description: "Headers only" }) },
      },
      handler: async (request: FastifyRequest, reply: FastifyReply) => {
        countDownload(metrics, reply);
        return serveFile(storage, addressOf(request), namespaceFor(deps, request), request, reply);
      },
    });
  }
}
