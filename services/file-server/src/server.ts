/**
 * The file server: the only component that touches object storage. Every object belongs to one namespace and lives in one
 * storage session. Its callers are our own components, known by the internal token; health, readiness and metrics are open.
 */
import type { ObjectStore } from "@svc/object-store";
import {
  type Context,
  callersOf,
  checkReadiness,
  createHttpServer,
  descriptorsCheck,
  type HttpServer,
  httpMetrics,
  metricsRoutes,
  type Redis,
  redisChecks,
  runningCheck,
  toldOf,
} from "@svc/service-kit";
import type { Objects } from "./objects.ts";
import { objectRoutes } from "./routes.ts";
import { storageCheck } from "./storage-check.ts";

const COMMIT_BODY_BYTES = 1024 * 1024;

export function buildApp(
  { config, log, registry, lifecycle, tls }: Context,
  store: ObjectStore,
  redis: Redis,
  objects: Objects,
): HttpServer {
  const app = createHttpServer({
    log,
    lifecycle,
    tls,
    callers: callersOf("file-server"),
    bodyLimit: COMMIT_BODY_BYTES,
    metrics: httpMetrics(registry, "svc_http"),
    alwaysOn: ["/health", "/ready", "/metrics"],
  });
  metricsRoutes(app, { registry, token: config.SVC_METRICS_TOKEN });
  app.get("/health", async () => ({ status: "ok" }));
  const checks = {
    ...redisChecks(redis),
    storage: storageCheck(store),
    descriptors: descriptorsCheck,
    running: runningCheck(lifecycle),
  };
  app.get("/ready", async (_request, reply) => {
    const found = await checkReadiness(checks);
    const { checks: passed, ...reasons } = toldOf(found);
    const words = Object.entries(passed).map(([name, ok]) => [name, ok ? "ok" : "failed"]);
    return reply.code(found.ok ? 200 : 503).send({
      status: found.ok ? "ready" : "not_ready",
      checks: Object.fromEntries(words),
      ...reasons,
    });
  });
  app.register((scope) => objectRoutes(scope as unknown as HttpServer, config, objects));
  return app;
}
