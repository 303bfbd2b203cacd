/** The sandbox's routes: objects and tool calls of a run. Each call presents a grant, which is checked every time. */
import { batchRequestSchema, MAX_BATCH_REQUEST_BYTES, ServiceError } from "@svc/contracts";
import type { FastifyRequest, HttpServer } from "@svc/service-kit";
import { readBatch } from "./batch.ts";
import type { GatewayDeps } from "./deps.ts";
import { listObjects } from "./list.ts";
import { readObject } from "./read.ts";
import { writeObject, writeRequest } from "./write.ts";

const PATIENCE_MS = 5000;

export function sandboxRoutes(app: HttpServer, deps: GatewayDeps): void {
  const { config, fileServer, authority, admission, toolCalls } = deps;
  /** Storing content takes longer than other calls, and sending it again does not make it faster. */
  const writeMs = 2 * config.EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS;
  /**
   * Cuts a stalled transfer, long after the file server should have answered. It holds one of the connections to the file server, which all runs
   * share.
   */
  const cutStandstill = ({ raw }: FastifyRequest) => void raw.setTimeout(writeMs + PATIENCE_MS);
  app.get<{ Params: { sessionHandle: string } }>("/sessions/:sessionHandle/objects", async (request) => {
    const detail = (request.query as { detail?: unknown }).detail ?? "normalized";
    if (detail !== "normalized") {
      throw new ServiceError("invalid_request", "detail: only `normalized` is offered here.", {
        details: [{ path: "detail", problem: "must be normalized" }],
      });
    }
    const { sessionHandle } = request.params;
    const { grant, subject } = await admission.admit(
      request.headers,
      (held) => authority.session(held, sessionHandle, "read"),
      () => ({ kind: "reads", count: 1 }),
    );
    return listObjects(authority, fileServer, grant, subject, sessionHandle, request.id);
  });
  app.get<{ Params: { sessionHandle: string; objectHandle: string } }>(
    "/sessions/:sessionHandle/objects/:objectHandle",
    { exposeHeadRoute: false },
    async (request, reply) => {
      cutStandstill(request);
      const { sessionHandle, objectHandle } = request.params;
      const { subject } = await admission.admit(
        request.headers,
        (held) => authority.object(held, authority.session(held, sessionHandle, "read"), objectHandle),
        () => ({ kind: "reads", count: 1 }),
      );
      return readObject(fileServer, subject, request, reply);
    },
  );
  app.post(
    "/inputs",
    { bodyLimit: MAX_BATCH_REQUEST_BYTES, schema: { body: batchRequestSchema } },
    (request, reply) => {
      cutStandstill(request);
      return readBatch(deps, request, reply);
    },
  );
  app.register(async (raw) => {
    // No body is parsed here: an output file may have any type, even JSON, and is passed on as it arrives, like tool calls.
    raw.removeAllContentTypeParsers();
    raw.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
    raw.post("/tool-call", (request, reply) => toolCalls.answer(request, reply));
    raw.post("/tool-calls", (request, reply) => toolCalls.record(request, reply));
    raw.put<{ Params: { sessionHandle: string; fileId: string } }>(
      "/sessions/:sessionHandle/objects/:fileId",
      async (request) => {
        cutStandstill(request);
        const { sessionHandle } = request.params;
        const { grant, subject } = await admission.admit(
          request.headers,
          (held) => writeRequest(config, held, authority.session(held, sessionHandle, "write"), request),
          (write) => ({ kind: "write", ...write }),
        );
        return writeObject(admission, fileServer, grant, subject, request, writeMs);
      },
    );
  });
}
