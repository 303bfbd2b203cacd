/** Starts the worker, which consumes the queues: its connections, its consumers, its port. */
import { ServiceError } from "@svc/contracts";
import {
  EventLog,
  type HandleJob,
  JOB_CANCELLATIONS,
  JobConsumer,
  jobIdOf,
  openQueues,
} from "@svc/job-queue";
import {
  Cancellations,
  type Context,
  createRedis,
  InnerClient,
  listenWhen,
  type Redis,
  type Running,
  tokenTo,
} from "@svc/service-kit";
import { sessionStoreFor } from "@svc/session-store";
import { Grants } from "./grants/grants.ts";
import { Canary } from "./health/canary.ts";
import { type WorkerMetrics, workerMetrics } from "./health/metrics.ts";
import { operationalRoutes } from "./health/routes.ts";
import { processJob } from "./round/process.ts";
import { runLine } from "./round/run-line.ts";
import { endJob, traceJob } from "./round/trace.ts";
import { Runner } from "./runner/client.ts";
import type { TellEvent } from "./runner/event-lines.ts";
import { RunnerFleet } from "./runner/fleet.ts";
import { publishRuntimes } from "./runner/runtimes.ts";
import { sessionMetrics } from "./sessions/metrics.ts";
import { Sessions } from "./sessions/sessions.ts";

export async function startWorker(context: Context): Promise<Running> {
  const { config, log, registry, tracing } = context;
  const redis = createRedis(config, log, { use: "commands" });
  const queueRedis = createRedis(config, log, { use: "blocking" });
  const subscriber = createRedis(config, log, { use: "blocking" });
  const gateway = new InnerClient({
    baseUrl: config.EGRESS_GATEWAY_URL,
    internalToken: tokenTo(config, "worker", "egress-gateway"),
    unreachable: "upstream_unavailable",
    tls: context.tls,
  });
  const fleet = new RunnerFleet(config, { log, tls: context.tls });
  const runner = new Runner(config, fleet, tracing);
  const metrics = workerMetrics(registry);
  metrics.watchRunners(() => fleet.counts());
  const cancellations = new Cancellations(queueRedis, JOB_CANCELLATIONS);
  const queues = openQueues(redis, log);
  const canary = new Canary({ config, redis, log, metrics, queues, runners: fleet });
  const grants = new Grants(gateway, config, log, metrics.stages, tracing);
  const sessions = config.SVC_PERSIST_SESSIONS
    ? new Sessions(sessionStoreFor(redis, config), log, sessionMetrics(registry))
    : undefined;
  redis.on("close", () => grants.forgetPrefetched());
  const handle = handlerOf(context, { redis, grants, runner, sessions, metrics, canary });
  let consumers: { python: JobConsumer; other: JobConsumer } | undefined;
  const running = () => ({
    python: consumers?.python.isRunning ?? false,
    other: consumers?.other.isRunning ?? false,
  });
  const app = operationalRoutes({ context, redis, fleet, gateway, canary, running, metrics, queues });
  // The worker listens for cancellations before it takes jobs, so that none is missed while a job begins.
  await listenWhen(cancellations.listen(subscriber), () =>
    app.listen({ port: config.WORKER_HEALTH_PORT, host: config.WORKER_HOST }),
  );
  const shared = { redis: queueRedis, log, cancellations, handle };
  const python = new JobConsumer({ kind: "python", concurrency: config.PYTHON_CONCURRENCY, ...shared });
  const other = new JobConsumer({ kind: "other", concurrency: config.OTHER_CONCURRENCY, ...shared });
  consumers = { python, other };
  const stopRuntimes = publishRuntimes(runner, redis, log, (runtimes) =>
    canary.start(runtimes.map(({ language }) => language)),
  );

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
      await Promise.all([gateway.close(), fleet.close(), queues.python.close(), queues.other.close()]);
      for (const connection of [subscriber, queueRedis, redis]) connection.disconnect();
    },
  };
}

interface Worked {
  redis: Redis;
  grants: Grants;
  runner: Runner;
  sessions: Sessions | undefined;
  metrics: WorkerMetrics;
  canary: Canary;
}

/** The handler of every job. */
function handlerOf({ config, log, tracing }: Context, { metrics, canary, ...deps }: Worked): HandleJob {
  return async ({ job, queueMs, cancelled }) => {
    const write = runLine(log, job, queueMs);
    const span = tracing && traceJob(tracing, job, queueMs);
    const traced = span === undefined ? job : { ...job, trace: span.context };
    const events = job.events ? new EventLog(deps.redis, log, jobIdOf(job), cancelled) : undefined;
    const tell: TellEvent | undefined = events && ((...event) => events.add(...event));
    const result = await metrics.during({ job, queueMs }, () =>
      processJob({ job: traced, queueMs, cancelled }, { config, log, tell, ...deps }),
    );
    await events?.end();
    if (span !== undefined) endJob(span, result);
    if (job.discard === undefined) canary.observe(job.language, result);
    write(result);
    return result;
  };
}
