/**
 * The tool call server: brings the calls of paused programs and the results of their callers together. All state is in
 * Redis; several servers may run. Everything but health and metrics needs the internal token.
 */
import {
  type Context,
  createHttpServer,
  createRedis,
  metricsRoutes,
  type Running,
  redisAlive,
  requireInternalToken,
} from "@svc/service-kit";
import { toolCallMetrics } from "./metrics.ts";
import { News } from "./news.ts";
import { toolCallRoutes } from "./routes.ts";
import { Sessions } from "./sessions.ts";
import { Waiting } from "./waiting.ts";

export async function startToolCallServer({ config, log, registry, lifecycle }: Context): Promise<Running> {
  const redis = createRedis(config, log, { use: "commands" });
  const subscriber = createRedis(config, log, { use: "blocking" });
  const sessions = new Sessions(redis, config);
  const news = new News((executions) => sessions.revisions(executions), log);
  const waiting = new Waiting(sessions, news);
  const app = createHttpServer({
    log,
    lifecycle,
    bodyLimit: config.SVC_HTTP_JSON_LIMIT,
    alwaysOn: ["/health", "/metrics"],
  });
  metricsRoutes(app, { registry, token: config.SVC_METRICS_TOKEN });
  app.get("/health", async (_request, reply) => {
    const alive = await redisAlive(redis);
    return reply.code(alive ? 200 : 503).send({ status: alive ? "healthy" : "unhealthy", redis: alive });
  });
  const metrics = toolCallMetrics(registry, () => sessions.count());
  app.register(async (internal) => {
    internal.addHook("onRequest", requireInternalToken(config.SVC_INTERNAL_SERVICE_TOKEN));
    toolCallRoutes(internal, { config, sessions, waiting, metrics });
  });

  await news.listen(subscriber);
  await app.listen({ port: config.TOOL_CALL_SERVER_PORT, host: config.TOOL_CALL_SERVER_HOST });
  return {
    stop: async () => {
      waiting.stop();
      await app.close();
      redis.disconnect();
      subscriber.disconnect();
    },
  };
}
