/**
 * The egress gateway: the single path out of the sandbox. Routes only: parse, check, call, reply. Sandbox-facing routes
 * need a grant on every call; /internal routes need the internal token.
 */
import { MAX_TOKEN_CHARS } from "@svc/capabilities";
import { registerGrantSchema, ServiceError } from "@svc/contracts";
import {
  type Context,
  createHttpServer,
  createRedis,
  InnerClient,
  metricsRoutes,
  type Running,
  redisAlive,
  requireInternalToken,
} from "@svc/service-kit";
import { z } from "zod";
import { Authority } from "./authority.ts";
import { listObjects } from "./list.ts";
import { readObject } from "./read.ts";
import { writeObject } from "./write.ts";

/** A grant travels in a header; the path holds two handles. */
const MAX_HEADER_BYTES = MAX_TOKEN_CHARS + 64 * 1024;

const revokeSchema = z
  .object({ reason: z.enum(["completed", "failed", "timeout", "cancelled"]).nullish() })
  .nullish();

export async function startGateway({ config, log, registry, lifecycle }: Context): Promise<Running> {
  const redis = createRedis(config, log, { use: "commands" });
  const fileServer = new InnerClient({
    baseUrl: config.EGRESS_GATEWAY_FILE_SERVER_URL,
    internalToken: config.SVC_INTERNAL_SERVICE_TOKEN,
    unreachable: "storage_unavailable",
  });
  const authority = new Authority(config, redis);
  const app = createHttpServer({
    log,
    lifecycle,
    bodyLimit: config.SVC_HTTP_JSON_LIMIT,
    maxHeaderBytes: MAX_HEADER_BYTES,
    alwaysOn: ["/live", "/health", "/ready", "/metrics"],
  });
  metricsRoutes(app, { registry, token: config.SVC_METRICS_TOKEN });

  app.get("/live", async () => ({ status: "ok" }));
  for (const path of ["/health", "/ready"]) {
    app.get(path, async (_request, reply) => {
      const ok = (await redisAlive(redis)) && (path === "/health" || lifecycle.state === "running");
      return reply.code(ok ? 200 : 503).send({ status: ok ? "ok" : "not_ready" });
    });
  }

  const internal = { onRequest: requireInternalToken(config.SVC_INTERNAL_SERVICE_TOKEN) };
  app.post(
    "/internal/egress-grants",
    { ...internal, schema: { body: registerGrantSchema } },
    async (request, reply) => {
      return reply.code(201).send(await authority.register(request.body.payload, request.body.claims));
    },
  );
  app.post<{ Params: { grantId: string } }>(
    "/internal/egress-grants/:grantId/revoke",
    { ...internal, schema: { body: revokeSchema } },
    async (request, reply) => {
      const body = request.body as z.infer<typeof revokeSchema>;
      await authority.revoke(request.params.grantId, body?.reason ?? "completed");
      return reply.code(204).send();
    },
  );

  app.get<{ Params: { sessionHandle: string } }>("/sessions/:sessionHandle/objects", async (request) => {
    const detail = (request.query as { detail?: unknown }).detail ?? "normalized";
    if (detail !== "normalized") {
      throw new ServiceError("invalid_request", "detail: only `normalized` is offered here.", {
        details: [{ path: "detail", problem: "must be normalized" }],
      });
    }
    const grant = await authority.grantOf(request.headers);
    const session = authority.session(grant, request.params.sessionHandle, "read");
    return listObjects(authority, fileServer, grant, session, request.params.sessionHandle, request.id);
  });
  app.get<{ Params: { sessionHandle: string; objectHandle: string } }>(
    "/sessions/:sessionHandle/objects/:objectHandle",
    { exposeHeadRoute: false },
    async (request, reply) => {
      const grant = await authority.grantOf(request.headers);
      const session = authority.session(grant, request.params.sessionHandle, "read");
      const object = authority.object(grant, session, request.params.objectHandle);
      return readObject(fileServer, object, request, reply);
    },
  );
  app.register(async (raw) => {
    // An output file may have any type, JSON too, and is passed on as it comes.
    raw.removeAllContentTypeParsers();
    raw.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
    raw.put<{ Params: { sessionHandle: string; fileId: string } }>(
      "/sessions/:sessionHandle/objects/:fileId",
      async (request) => {
        const grant = await authority.grantOf(request.headers);
        const session = authority.session(grant, request.params.sessionHandle, "write");
        return writeObject(config, fileServer, grant, session, request);
      },
    );
  });

  await app.listen({ port: config.EGRESS_GATEWAY_PORT, host: config.EGRESS_GATEWAY_HOST });
  return {
    stop: async () => {
      await app.close();
      await fileServer.close();
      redis.disconnect();
    },
  };
}
