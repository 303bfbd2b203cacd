/**
 * The file server: the only component that touches object storage. Every object belongs to one namespace and lives in one
 * storage session. Its callers are our own components, known by the internal token; health, readiness and metrics are open.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ObjectStore } from "@svc/object-store";
import {
  type Context,
  createHttpServer,
  createRedis,
  type HttpServer,
  httpMetrics,
  metricsRoutes,
  type Redis,
  type Running,
  redisAlive,
} from "@svc/service-kit";
import { Objects } from "./objects.ts";
import { RecordCache } from "./record-cache.ts";
import { startRetention } from "./retention.ts";
import { objectRoutes } from "./routes.ts";
import { createStore } from "./storage.ts";

const COMMIT_BODY_BYTES = 1024 * 1024;

/** How long a start waits to hear whether storage can be used; it does not depend on it. */
const CHECK_MS = 1000;

export async function startFileServer(context: Context): Promise<Running> {
  const { config, log } = context;
  const store = await createStore(config);
  const redis = createRedis(config, log, { use: "commands" });
  const cache = new RecordCache(redis, config.SESSION_CACHE_TTL, log);
  const app = buildApp(context, store, redis, cache);
  const checked = store
    .check()
    .catch((error: Error) => log.warn({ err: error }, "object storage cannot be used"));
  await Promise.race([checked, sleep(CHECK_MS, undefined, { ref: false })]);
  await app.listen({ port: config.FILE_SERVER_PORT, host: config.FILE_SERVER_HOST });
  const retention = startRetention(config, log, store, cache);
  return {
    stop: async () => {
      await app.close();
      await retention.stop();
      redis.disconnect();
    },
  };
}

function buildApp(
  { config, log, registry, lifecycle }: Context,
  store: ObjectStore,
  redis: Redis,
  cache: RecordCache,
): HttpServer {
  const app = createHttpServer({
    log,
    lifecycle,
    bodyLimit: COMMIT_BODY_BYTES,
    metrics: httpMetrics(registry, "svc_http"),
    alwaysOn: ["/health", "/ready", "/metrics"],
  });
  metricsRoutes(app, { registry, token: config.SVC_METRICS_TOKEN });
  app.get("/health", async () => ({ status: "ok" }));
  app.get("/ready", async (_request, reply) => {
    const [redisIsUp, storageIsUp] = await Promise.all([
      redisAlive(redis),
      store.check().then(
        () => true,
        () => false,
      ),
    ]);
    const ready = redisIsUp && storageIsUp && lifecycle.state === "running";
    const word = (ok: boolean) => (ok ? "ok" : "failed");
    return reply.code(ready ? 200 : 503).send({
      status: ready ? "ready" : "not_ready",
      checks: { redis: word(redisIsUp), storage: word(storageIsUp) },
    });
  });
  const maxBytes = Math.max(
    config.MAX_FILE_SIZE,
    config.EGRESS_GATEWAY_MAX_FILE_BYTES,
    config.SVC_SESSION_STATE_MAX_BYTES,
  );
  const objects = new Objects(store, cache, { maxBytes });
  app.register((scope) => objectRoutes(scope as unknown as HttpServer, config, objects));
  return app;
}
