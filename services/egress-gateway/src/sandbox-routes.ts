/** Objects and tool calls of a run. Every call shows a grant, which is checked anew. */
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
  /** Storing content takes longer than answering other calls, and sending it again makes it no faster. */
  const writeMs = 2 * config.EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS;
  /**
   * A transfer in which nothing moves is cut long after the file server would have had to answer: it holds one of the connections to it, which
   * are those of all runs.
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
    // An output file may have any type, JSON too, and is passed on as it comes; so are tool calls.
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
