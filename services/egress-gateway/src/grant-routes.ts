/**
 * The routes of grants and callback tokens. The worker registers grants and reports results. The worker and the API end grants and mint callback
 * tokens. Each presents its own internal token.
 */
import {
  type EndedGrant,
  endGrantsSchema,
  grantEndSchema,
  mintCallbackSchema,
  prefetchRequestSchema,
  registerGrantSchema,
} from "@svc/contracts";
import {
  type Component,
  endFailed,
  type FastifyRequest,
  type HttpServer,
  requireInternalToken,
  tokensFrom,
} from "@svc/service-kit";
import { z } from "zod";
import { mintCallback, mintNamed } from "./callback-token.ts";
import type { GatewayDeps } from "./deps.ts";
import { outcomeOf, type RestoreResult, restoreResultSchema, unmasked } from "./restore-result.ts";

/** Attributes of the span of a registration. */
const REGISTERS = { "http.request.method": "POST", "http.route": "/internal/egress-grants" };
const revokeSchema = z.object({ reason: grantEndSchema.nullish() }).nullish();

export function grantRoutes(app: HttpServer, deps: GatewayDeps): void {
  const openTo = (...callers: Component[]) => ({
    onRequest: requireInternalToken(tokensFrom(deps.config, "egress-gateway", callers)),
  });
  const guards = { ofWorker: openTo("worker"), ofBoth: openTo("worker", "api") };
  registrationRoutes(app, deps, guards);
  resultRoutes(app, deps, guards);
}

type Guards = Readonly<Record<"ofWorker" | "ofBoth", { onRequest: ReturnType<typeof requireInternalToken> }>>;

/** Grants from their registration to their end. */
function registrationRoutes(
  app: HttpServer,
  { config, keys, ledger, authority, tracing }: GatewayDeps,
  { ofWorker, ofBoth }: Guards,
): void {
  /** A grant that cannot be ended expires by itself. */
  const endInBackground = (ends: readonly EndedGrant[], { log: requestLog }: FastifyRequest) => {
    authority
      .revokeAll(ends)
      .catch((err: Error) => requestLog.warn({ err }, "grants of an ended round could not be ended"));
  };
  app.post(
    "/internal/egress-grants",
    { ...ofWorker, schema: { body: registerGrantSchema } },
    async (request, reply) => {
      const { payload, claims, ends = [], callback } = request.body;
      const span = tracing?.join("gateway.register", "server", request.headers, REGISTERS);
      try {
        const registered = authority.register(payload, claims);
        const minted = callback && mintNamed(keys, ledger, config, callback, claims);
        endInBackground(ends, request);
        const [grant, callback_token] = await Promise.all([registered, minted]);
        span?.end();
        return reply.code(201).send({ ...grant, callback_token });
      } catch (error) {
        endFailed(span, error);
        throw error;
      }
    },
  );
  app.post(
    "/internal/egress-grants/prefetch",
    { ...ofWorker, schema: { body: prefetchRequestSchema } },
    async (request, reply) => {
      const grants = authority.prefetch(request.body);
      endInBackground(request.body.ends ?? [], request);
      return reply.code(201).send({ grants: await grants });
    },
  );
  app.post(
    "/internal/egress-grants/ends",
    { ...ofWorker, schema: { body: endGrantsSchema } },
    async (request, reply) => {
      await authority.revokeAll(request.body.ends);
      return reply.code(204).send();
    },
  );
  app.post<{ Params: { grantId: string } }>(
    "/internal/egress-grants/:grantId/revoke",
    { ...ofBoth, schema: { body: revokeSchema } },
    async (request, reply) => {
      const body = request.body as z.infer<typeof revokeSchema>;
      await authority.revoke(request.params.grantId, body?.reason ?? "completed");
      return reply.code(204).send();
    },
  );
}

function resultRoutes(
  app: HttpServer,
  { config, keys, ledger, authority }: GatewayDeps,
  { ofWorker, ofBoth }: Guards,
): void {
  app.post<{ Params: { grantId: string } }>(
    "/internal/egress-grants/:grantId/restore-result",
    { ...ofWorker, schema: { body: restoreResultSchema } },
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
    { ...ofBoth, schema: { body: mintCallbackSchema } },
    async (request, reply) => reply.code(201).send(await mintCallback(keys, ledger, config, request.body)),
  );
}
