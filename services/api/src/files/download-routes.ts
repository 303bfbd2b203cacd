/** GET and HEAD of a file's bytes: parse, call, reply. */
import { errorBodySchema, fileOwnerQuerySchema, fileParamsSchema } from "@svc/contracts";
import type { FastifyReply, FastifyRequest, HttpServer } from "@svc/service-kit";
import { z } from "zod";
import { addressOf, namespaceFor } from "./addressed.ts";
import type { FileRoutesDeps } from "./deps.ts";
import { serveFile } from "./download.ts";
import type { FileStorage } from "./file-storage.ts";
import { countDownload, type TransferMetrics } from "./metrics.ts";

const errors = { "4xx": errorBodySchema, "5xx": errorBodySchema };
const fileBytes = {
  description: "The bytes of the file",
  content: { "application/octet-stream": { schema: z.string().meta({ format: "binary" }) } },
};

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
