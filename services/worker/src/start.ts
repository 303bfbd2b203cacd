/** Starts the worker, which consumes the queues: its connections, its consumers, its port. */
import { ServiceError } from "@svc/contracts";
import { Cancellations, type HandleJob, JobConsumer, openQueues } from "@svc/job-queue";
import { type Context, createRedis, InnerClient, type Running } from "@svc/service-kit";
import { sessionStoreFor } from "@svc/session-store";
import { Grants } from "./grants/grants.ts";
import { Canary } from "./health/canary.ts";
import { workerMetrics } from "./health/metrics.ts";
import { operationalRoutes } from "./health/routes.ts";
import { processJob } from "./round/process.ts";
import { runLine } from "./round/run-line.ts";
import { Runner } from "./runner/client.ts";
import { publishRuntimes } from "./runner/runtimes.ts";
import { sessionMetrics } from "./sessions/metrics.ts";
import { Sessions } from "./sessions/sessions.ts";

export async function startWorker(context: Context): Promise<Running> {
  const { config, log, registry } = context;
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
  const grants = new Grants(gateway, config, log, metrics.stages);
  const sessions = config.SVC_PERSIST_SESSIONS
    ? new Sessions(sessionStoreFor(redis, config), log, sessionMetrics(registry))
    : undefined;
  redis.on("close", () => grants.forgetPrefetched());
  const handle: HandleJob = async (job, cancelled) => {
    const write = runLine(log, job);
    const result = await metrics.during(job, () =>
      processJob(job, cancelled, { config, log, redis, grants, runner, sessions }),
    );
    if (job.discard === undefined) canary.observe(job.language, result);
    write(result);
    return result;
  };
  const shared = { redis: queueRedis, log, cancellations, handle };
  const python = new JobConsumer({ kind: "python", concurrency: config.PYTHON_CONCURRENCY, ...shared });
  const other = new JobConsumer({ kind: "other", concurrency: config.OTHER_CONCURRENCY, ...shared });
  const running = () => ({ python: python.isRunning, other: other.isRunning });
  const stopRuntimes = publishRuntimes(runner, redis, log, (runtimes) =>
    canary.start(runtimes.map(({ language }) => language)),
  );

  const app = operationalRoutes({ context, redis, runner, canary, running, metrics, queues });
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
