/** The worker's HTTP server: health, readiness and metrics, nothing else. */
import type { JobQueues } from "@svc/job-queue";
import {
  type Context,
  createHttpServer,
  type HttpServer,
  metricsRoutes,
  type Redis,
  redisAlive,
} from "@svc/service-kit";
import type { Runner } from "../runner/client.ts";
import type { Canary } from "./canary.ts";
import type { WorkerMetrics } from "./metrics.ts";

const BODY_BYTES = 1024;

export interface Operated {
  context: Context;
  redis: Redis;
  runner: Runner;
  canary: Canary;
  /** Which consumers take jobs. */
  running: () => { python: boolean; other: boolean };
  metrics: WorkerMetrics;
  queues: JobQueues;
}

export function operationalRoutes(operated: Operated): HttpServer {
  const { context, redis, runner, canary, running, metrics, queues } = operated;
  const { config, log, registry, lifecycle } = context;
  const app = createHttpServer({
    log,
    lifecycle,
    bodyLimit: BODY_BYTES,
    alwaysOn: ["/health", "/ready", "/metrics"],
  });
  metricsRoutes(app, {
    registry,
    token: config.SVC_METRICS_TOKEN,
    refresh: () => metrics.refresh(queues, running()),
  });
  app.get("/health", async (_request, reply) => {
    const workers = running();
    const ok = workers.python && workers.other;
    return reply.code(ok ? 200 : 503).send({ status: ok ? "healthy" : "unhealthy", workers });
  });
  app.get("/ready", async (_request, reply) => {
    const checks = {
      redis: await redisAlive(redis),
      runner: await runner.healthy(),
      canary: canary.fresh,
      running: lifecycle.state === "running",
    };
    const ok = Object.values(checks).every(Boolean);
    return reply.code(ok ? 200 : 503).send({ status: ok ? "ready" : "not_ready", checks });
  });
  return app;
}
