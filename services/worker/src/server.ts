/** The worker: consumes the queues; its HTTP server has operational routes only. */
import { type Job, type JobResult, QUEUE_OPTIONS, ServiceError } from "@svc/contracts";
import {
  type Context,
  createHttpServer,
  createRedis,
  InnerClient,
  metricsRoutes,
  type Running,
  redisAlive,
} from "@svc/service-kit";
import { Queue } from "bullmq";
import { Canary } from "./canary.ts";
import { Cancels } from "./cancels.ts";
import { Grants } from "./grants.ts";
import { ALL_QUEUES, workerMetrics } from "./metrics.ts";
import { processJob } from "./process.ts";
import { startConsumers } from "./queues.ts";
import { Runner } from "./runner.ts";
import { publishRuntimes } from "./runtimes.ts";

export async function startWorker(context: Context): Promise<Running> {
  const { config, log, registry, lifecycle } = context;
  const redis = createRedis(config, log, { use: "commands" });
  const queueRedis = createRedis(config, log, { use: "blocking" });
  const subscriber = createRedis(config, log, { use: "blocking" });
  const gateway = new InnerClient({
    baseUrl: config.EGRESS_GATEWAY_URL,
    internalToken: config.SVC_INTERNAL_SERVICE_TOKEN,
    unreachable: "upstream_unavailable",
  });
  const runner = new Runner(config);
  const metrics = workerMetrics(registry);
  const cancels = new Cancels();
  await cancels.listen(subscriber);
  // Lost connections are logged by the connection itself.
  const queues = ALL_QUEUES.map((name) =>
    new Queue(name, { connection: redis as never, ...QUEUE_OPTIONS }).on("error", () => undefined),
  );
  const canary = new Canary(config, redis, log, metrics, queues);
  const grants = new Grants(gateway, config, log);
  redis.on("close", () => grants.forgetAhead());
  const deps = { config, log, redis, grants, runner, cancels };

  const handle = async (job: Job): Promise<JobResult> => {
    const result = await processJob(job, deps);
    if (job.discard === undefined) canary.observe(result);
    return result;
  };
  const consumers = await startConsumers({
    context,
    redis,
    queueRedis,
    subscriber,
    cancels,
    metrics,
    handle,
  });
  const stopRuntimes = publishRuntimes(runner, redis, log, (runtimes) =>
    canary.start(runtimes.map(({ language }) => language)),
  );

  const app = createHttpServer({
    log,
    lifecycle,
    bodyLimit: 1024,
    alwaysOn: ["/health", "/ready", "/metrics"],
  });
  metricsRoutes(app, {
    registry,
    token: config.SVC_METRICS_TOKEN,
    refresh: () => metrics.refresh(queues, redis, consumers.running()),
  });
  app.get("/health", async (_request, reply) => {
    const workers = consumers.running();
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
  await app.listen({ port: config.WORKER_HEALTH_PORT, host: config.WORKER_HOST });

  return {
    stop: async () => {
      stopRuntimes();
      canary.stop();
      const grace = setTimeout(
        () => cancels.abortAll(new ServiceError("shutting_down")),
        config.SHUTDOWN_GRACE_MS,
      );
      await consumers.close();
      clearTimeout(grace);
      await Promise.all([app.close(), grants.close()]);
      await Promise.all([gateway.close(), runner.close(), ...queues.map((queue) => queue.close())]);
      for (const connection of [subscriber, queueRedis, redis]) connection.disconnect();
    },
  };
}
