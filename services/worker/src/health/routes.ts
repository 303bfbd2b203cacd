/** The worker's HTTP server: health, readiness and metrics, nothing else. */
import type { JobQueues } from "@svc/job-queue";
import {
  askPeer,
  type Context,
  callersOf,
  checkReadiness,
  createHttpServer,
  descriptorsCheck,
  type HttpServer,
  type InnerClient,
  metricsRoutes,
  peerReason,
  type Redis,
  redisChecks,
  runningCheck,
  toldOf,
} from "@svc/service-kit";
import type { RunnerFleet } from "../runner/fleet.ts";
import type { Canary } from "./canary.ts";
import type { WorkerMetrics } from "./metrics.ts";

const BODY_BYTES = 1024;

export interface Operated {
  context: Context;
  redis: Redis;
  fleet: RunnerFleet;
  gateway: InnerClient;
  canary: Canary;
  /** Which consumers take jobs. */
  running: () => { python: boolean; other: boolean };
  metrics: WorkerMetrics;
  queues: JobQueues;
}

export function operationalRoutes(operated: Operated): HttpServer {
  const { context, redis, fleet, gateway, canary, running, metrics, queues } = operated;
  const { config, log, registry, lifecycle, tls } = context;
  const app = createHttpServer({
    log,
    lifecycle,
    tls,
    callers: callersOf("worker"),
    bodyLimit: BODY_BYTES,
    alwaysOn: ["/live", "/health", "/ready", "/metrics"],
  });
  metricsRoutes(app, {
    registry,
    token: config.SVC_METRICS_TOKEN,
    refresh: () => metrics.refresh(queues, running()),
  });
  app.get("/live", async () => ({ status: "ok" }));
  app.get("/health", async (_request, reply) => {
    const workers = running();
    const ok = workers.python && workers.other;
    return reply.code(ok ? 200 : 503).send({ status: ok ? "healthy" : "unhealthy", workers });
  });
  const checks = {
    ...redisChecks(redis),
    runner: () => fleet.notReady(),
    // Only `/live`: what the gateway itself needs is part of its own readiness.
    gateway: async () => peerReason("the gateway", await askPeer(gateway, "/live")),
    canary: () => canary.missing,
    descriptors: descriptorsCheck,
    running: runningCheck(lifecycle),
  };
  app.get("/ready", async (_request, reply) => {
    const found = await checkReadiness(checks);
    const status = found.ok ? "ready" : "not_ready";
    return reply.code(found.ok ? 200 : 503).send({ status, ...toldOf(found) });
  });
  return app;
}
