/**
 * The egress gateway: the single path out of the sandbox. Routes only: parse, check, call, reply. Sandbox-facing routes
 * need a grant on every call; /internal routes need the internal token.
 */
import { Ledger, MAX_TOKEN_CHARS, sealKeys } from "@svc/capabilities";
import {
  type EndedGrant,
  endGrantsSchema,
  grantEndSchema,
  mintCallbackSchema,
  registerAheadSchema,
  registerGrantSchema,
  ServiceError,
} from "@svc/contracts";
import {
  type Context,
  createHttpServer,
  createRedis,
  type FastifyRequest,
  InnerClient,
  metricsRoutes,
  type Running,
  redisAlive,
  requireInternalToken,
} from "@svc/service-kit";
import { z } from "zod";
import { Admission } from "./admission.ts";
import { Authority } from "./authority.ts";
import { mintCallback, mintNamed } from "./callback-token.ts";
import { listObjects } from "./list.ts";
import { readObject } from "./read.ts";
import { outcomeOf, type RestoreResult, restoreResultSchema, unmasked } from "./restore-result.ts";
import { ToolCalls } from "./tool-calls.ts";
import { writeObject, writeRequest } from "./write.ts";

/** A grant and a callback token travel in headers; the path holds two handles. */
const MAX_HEADER_BYTES = 2 * MAX_TOKEN_CHARS + 64 * 1024;

const revokeSchema = z.object({ reason: grantEndSchema.nullish() }).nullish();

export async function startGateway({ config, log, registry, lifecycle }: Context): Promise<Running> {
  const redis = createRedis(config, log, { use: "commands" });
  const fileServer = new InnerClient({
    baseUrl: config.EGRESS_GATEWAY_FILE_SERVER_URL,
    internalToken: config.SVC_INTERNAL_SERVICE_TOKEN,
    unreachable: "storage_unavailable",
  });
  const keys = sealKeys(config.SVC_EGRESS_GRANT_SECRET, config.SVC_EGRESS_GRANT_SECRET_PREVIOUS);
  const ledger = new Ledger({
    open: () => createRedis(config, log, { use: "commands" }),
    connections: config.SVC_EGRESS_LEDGER_MUTATION_CONNECTIONS,
    graceSeconds: config.SVC_EGRESS_LEDGER_TTL_GRACE_SECONDS,
  });
  const authority = new Authority(keys, ledger, config.EGRESS_GRANT_TTL_SECONDS);
  const admission = new Admission(keys, ledger, config.SVC_EGRESS_LEDGER_REQUIRED);
  const toolCalls = new ToolCalls(keys, admission, config);
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

  /** One that cannot be ended lapses by itself. */
  const endInBackground = (ends: readonly EndedGrant[], { log: requestLog }: FastifyRequest) => {
    authority
      .revokeAll(ends)
      .catch((err: Error) => requestLog.warn({ err }, "grants of an ended round could not be ended"));
  };
  const internal = { onRequest: requireInternalToken(config.SVC_INTERNAL_SERVICE_TOKEN) };
  app.post(
    "/internal/egress-grants",
    { ...internal, schema: { body: registerGrantSchema } },
    async (request, reply) => {
      const { payload, claims, ends = [], callback } = request.body;
      const registered = authority.register(payload, claims);
      const minted = callback && mintNamed(keys, ledger, config, callback, claims);
      endInBackground(ends, request);
      const [grant, callback_token] = await Promise.all([registered, minted]);
      return reply.code(201).send({ ...grant, callback_token });
    },
  );
  app.post(
    "/internal/egress-grants/ahead",
    { ...internal, schema: { body: registerAheadSchema } },
    async (request, reply) => {
      const grants = authority.registerAhead(request.body);
      endInBackground(request.body.ends ?? [], request);
      return reply.code(201).send({ grants: await grants });
    },
  );
  app.post(
    "/internal/egress-grants/ends",
    { ...internal, schema: { body: endGrantsSchema } },
    async (request, reply) => {
      await authority.revokeAll(request.body.ends);
      return reply.code(204).send();
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
  app.post<{ Params: { grantId: string } }>(
    "/internal/egress-grants/:grantId/restore-result",
    { ...internal, schema: { body: restoreResultSchema } },
    async (request) => {
      const { grantId } = request.params;
      const body = request.body as RestoreResult;
      const answer = body.result === undefined ? {} : { result: unmasked(keys, grantId, body) };
      const outcome = outcomeOf(body);
      if (outcome === undefined) return answer;
      await authority.recordRestore(grantId, outcome);
      return { ...answer, grant_id: grantId, restored: outcome.restored, recorded: true };
    },
  );

  app.post(
    "/internal/ptc-callback-token",
    { ...internal, schema: { body: mintCallbackSchema } },
    async (request, reply) => reply.code(201).send(await mintCallback(keys, ledger, config, request.body)),
  );

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
      () => ({ kind: "read" }),
    );
    return listObjects(authority, fileServer, grant, subject, sessionHandle, request.id);
  });
  app.get<{ Params: { sessionHandle: string; objectHandle: string } }>(
    "/sessions/:sessionHandle/objects/:objectHandle",
    { exposeHeadRoute: false },
    async (request, reply) => {
      const { sessionHandle, objectHandle } = request.params;
      const { subject } = await admission.admit(
        request.headers,
        (held) => authority.object(held, authority.session(held, sessionHandle, "read"), objectHandle),
        () => ({ kind: "read" }),
      );
      return readObject(fileServer, subject, request, reply);
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
        const { sessionHandle } = request.params;
        const { grant, subject } = await admission.admit(
          request.headers,
          (held) => writeRequest(config, held, authority.session(held, sessionHandle, "write"), request),
          (write) => ({ kind: "write", ...write }),
        );
        return writeObject(admission, fileServer, grant, subject, request);
      },
    );
  });

  await app.listen({ port: config.EGRESS_GATEWAY_PORT, host: config.EGRESS_GATEWAY_HOST });
  return {
    stop: async () => {
      toolCalls.stop();
      await app.close();
      await toolCalls.close();
      await fileServer.close();
      ledger.close();
      redis.disconnect();
    },
  };
}
