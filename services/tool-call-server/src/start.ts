/**
 * The tool call server: brings together the calls of paused programs and the results of their callers. All state is in Redis, so several servers
 * may run. Everything but health and metrics needs the internal token.
 */
import {
  type Context,
  callersOf,
  checkReadiness,
  createHttpServer,
  createRedis,
  descriptorsCheck,
  type HttpServer,
  type Lifecycle,
  listenWhen,
  metricsRoutes,
  type Redis,
  type Running,
  redisChecks,
  runningCheck,
  toldOf,
} from "@svc/service-kit";
import { ChangeNotifier } from "./change-notifier.ts";
import { Exchanges } from "./exchanges.ts";
import { LongPolls } from "./long-poll.ts";
import { toolCallMetrics } from "./metrics.ts";
import { toolCallRoutes } from "./routes.ts";

export async function startToolCallServer({
  config,
  log,
  registry,
  lifecycle,
  tls,
}: Context): Promise<Running> {
  const redis = createRedis(config, log, { use: "commands" });
  const subscriber = createRedis(config, log, { use: "blocking" });
  const exchanges = new Exchanges(redis, config);
  const notifier = new ChangeNotifier((executions) => exchanges.revisions(executions), log);
  const polls = new LongPolls(exchanges, notifier);
  const app = createHttpServer({
    log,
    lifecycle,
    tls,
    callers: callersOf("tool-call-server"),
    bodyLimit: config.SVC_HTTP_JSON_LIMIT,
    alwaysOn: ["/live", "/health", "/ready", "/metrics"],
  });
  metricsRoutes(app, { registry, token: config.SVC_METRICS_TOKEN });
  healthRoutes(app, redis, lifecycle);
  const metrics = toolCallMetrics(registry, () => exchanges.count());
  app.register(async (internal) => toolCallRoutes(internal, { config, exchanges, polls, metrics }));

  await listenWhen(notifier.listen(subscriber), () =>
    app.listen({ port: config.TOOL_CALL_SERVER_PORT, host: config.TOOL_CALL_SERVER_HOST }),
  );
  return {
    stop: async () => {
      polls.stop();
      await app.close();
      redis.disconnect();
      subscriber.disconnect();
    },
  };
}

function healthRoutes(app: HttpServer, redis: Redis, lifecycle: Lifecycle): void {
  const { redis: redisCheck, clock } = redisChecks(redis);
  app.get("/live", async () => ({ status: "ok" }));
  app.get("/health", async (_request, reply) => {
    const { ok } = await checkReadiness({ redis: redisCheck });
    return reply.code(ok ? 200 : 503).send({ status: ok ? "healthy" : "unhealthy", redis: ok });
  });
  const ready = { redis: redisCheck, clock, descriptors: descriptorsCheck, running: runningCheck(lifecycle) };
  app.get("/ready", async (_request, reply) => {
    const found = await checkReadiness(ready);
    const status = found.ok ? "ready" : "not_ready";
    return reply.code(found.ok ? 200 : 503).send({ status, ...toldOf(found) });
  });
}
