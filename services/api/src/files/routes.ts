/**
 * The public file routes. The authenticated principal and the named kind decide which files a request may access. All other files look
 * as if they did not exist: every cause gives the same answer after the same time.
 */
import { setTimeout as delay } from "node:timers/promises";
import { isId, ServiceError } from "@svc/contracts";
import type { FastifyRequest, HttpServer } from "@svc/service-kit";
import type { FileRoutesDeps } from "./deps.ts";
import { downloadRoutes } from "./download-routes.ts";
import { FileStorage } from "./file-storage.ts";
import { createRecordLookup, type RecordLookup } from "./lookup.ts";
import { transferMetrics } from "./metrics.ts";
import { objectRoutes } from "./object-routes.ts";
import { uploadRoutes } from "./upload-routes.ts";

/** Longer than any path to a 404 takes, so that the time reveals nothing about the cause. */
const NOT_FOUND_MS = 10;

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
    objectRoutes(routes, deps, storage);
  });
  return createRecordLookup(deps);
}

function checkIds(request: FastifyRequest): void {
  for (const id of Object.values(request.params as Record<string, unknown>)) {
    if (!isId(id)) throw new ServiceError("invalid_id");
  }
}
