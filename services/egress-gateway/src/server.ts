/** The egress gateway: the single path out of the sandbox. Puts its routes together. */
import { MAX_TOKEN_CHARS } from "@svc/capabilities";
import { JSON_BOUNDS } from "@svc/contracts";
import {
  type Checks,
  callersOf,
  checkReadiness,
  createHttpServer,
  descriptorsCheck,
  type HttpServer,
  metricsRoutes,
  redisChecks,
  runningCheck,
  toldOf,
} from "@svc/service-kit";
import type { GatewayDeps } from "./deps.ts";
import { grantRoutes } from "./grant-routes.ts";
import { sandboxRoutes } from "./sandbox-routes.ts";

/** A grant and a callback token travel in headers; the path holds two handles. */
const MAX_HEADER_BYTES = 2 * MAX_TOKEN_CHARS + 64 * 1024;

export function buildGateway(deps: GatewayDeps): HttpServer {
  const { config, log, registry, lifecycle, tls } = deps;
  const app = createHttpServer({
    log,
    lifecycle,
    tls,
    callers: callersOf("egress-gateway"),
    bodyLimit: config.SVC_HTTP_JSON_LIMIT,
    // Bounded, because a runner's body is parsed before its grant is checked.
    json: { bounds: JSON_BOUNDS },
    maxHeaderBytes: MAX_HEADER_BYTES,
    metrics: deps.metrics.requests,
    alwaysOn: ["/live", "/health", "/ready", "/metrics"],
  });
  metricsRoutes(app, { registry, token: config.SVC_METRICS_TOKEN });
  healthRoutes(app, deps);
  grantRoutes(app, deps);
  sandboxRoutes(app, deps);
  return app;
}

function healthRoutes(app: HttpServer, { redis, lifecycle }: GatewayDeps): void {
  const store = redisChecks(redis);
  const health: Checks = { redis: store.redis };
  const ready: Checks = { ...store, descriptors: descriptorsCheck, running: runningCheck(lifecycle) };
  app.get("/live", async () => ({ status: "ok" }));
  for (const [path, checks] of [
    ["/health", health],
    ["/ready", ready],
  ] as const) {
    app.get(path, async (_request, reply) => {
      const found = await checkReadiness(checks);
      const status = found.ok ? "ok" : "not_ready";
      // Runners, which have no Redis, compare their clocks with this time.
      const time = new Date().toISOString();
      return reply.code(found.ok ? 200 : 503).send({ status, time, ...toldOf(found) });
    });
  }
}
