/** The egress gateway: the single path out of the sandbox. Puts its routes together. */
import { MAX_TOKEN_CHARS } from "@svc/capabilities";
import { createHttpServer, type HttpServer, metricsRoutes, redisAlive } from "@svc/service-kit";
import type { GatewayDeps } from "./deps.ts";
import { grantRoutes } from "./grant-routes.ts";
import { sandboxRoutes } from "./sandbox-routes.ts";

/** A grant and a callback token travel in headers; the path holds two handles. */
const MAX_HEADER_BYTES = 2 * MAX_TOKEN_CHARS + 64 * 1024;

export function buildGateway(deps: GatewayDeps): HttpServer {
  const { config, log, registry, lifecycle, redis } = deps;
  const app = createHttpServer({
    log,
    lifecycle,
    bodyLimit: config.SVC_HTTP_JSON_LIMIT,
    maxHeaderBytes: MAX_HEADER_BYTES,
    metrics: deps.metrics.requests,
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
  grantRoutes(app, deps);
  sandboxRoutes(app, deps);
  return app;
}
