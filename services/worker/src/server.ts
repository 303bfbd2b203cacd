/** The worker: consumes the queues; its HTTP server has operational routes only. */
import { ServiceError } from "@svc/contracts";
import { Cancellations, type HandleJob, JobConsumer, openQueues } from "@svc/job-queue";
import {
  type Context,
  createHttpServer,
  createRedis,
  InnerClient,
  metricsRoutes,
  type Running,
  redisAlive,
} from "@svc/service-kit";
import { Canary } from "./canary.ts";
import { Grants } from "./grants.ts";
import { workerMetrics } from "./metrics.ts";
import { processJob } from "./process.ts";
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
  const cancellations = new Cancellations();
  await cancellations.listen(subscriber);
  const queues = openQueues(redis, log);
  const canary = new Canary(config, redis, log, metrics, queues);
  const grants = new Grants(gateway, config, log);
  redis.on("close", () => grants.forgetAhead());
  const handle: HandleJob = async (job, cancelled) => {
    const end = metrics.began(job.language);
    const result = await processJob(job, cancelled, { config, log, redis, grants, runner });
    if (job.discard === undefined) canary.observe(result);
    end(result.ok);
    return result;
  };
  const shared = { redis: queueRedis, log, cancellations, handle };
  const python = new JobConsumer({ kind: "python", concurrency: config.PYTHON_CONCURRENCY, ...shared });
  const other = new JobConsumer({ kind: "other", concurrency: config.OTHER_CONCURRENCY, ...shared });
  const running = () => ({ python: python.isRunning, other: other.isRunning });
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
  await app.listen({ port: config.WORKER_HEALTH_PORT, host: config.WORKER_HOST });

  return {
    stop: async () => {
      stopRuntimes();
      canary.stop();
      const grace = setTimeout(
        () => cancellations.abortAll(new ServiceError("shutting_down")),
        config.SHUTDOWN_GRACE_MS,
      );
      await Promise.all([python.close(), other.close()]);
      clearTimeout(grace);
      await Promise.all([app.close(), grants.close()]);
      await Promise.all([gateway.close(), runner.close(), queues.python.close(), queues.other.close()]);
      for (const connection of [subscriber, queueRedis, redis]) connection.disconnect();
    },
  };
}
