/** The tool call server's operational routes: health and metrics. */
import {
  type Context,
  createHttpServer,
  createRedis,
  metricsRoutes,
  type Running,
  redisAlive,
} from "@svc/service-kit";

export async function startToolCallServer({ config, log, registry, lifecycle }: Context): Promise<Running> {
  const redis = createRedis(config, log, { use: "commands" });
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
  await app.listen({ port: config.TOOL_CALL_SERVER_PORT, host: config.TOOL_CALL_SERVER_HOST });
  return {
    stop: async () => {
      await app.close();
      redis.disconnect();
    },
  };
}
