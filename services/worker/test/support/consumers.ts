/** Workers of a test without a runner: real consumers whose work is the test's. */
import { CANCEL_CHANNEL, JOB_HINTS_CHANNEL, type Job, type JobResult } from "@svc/contracts";
import { createLog, createRedis, createRegistry, loadConfig } from "@svc/service-kit";
import { newSecret } from "../../../../packages/service-kit/test/support/secrets.ts";
import { Cancels } from "../../src/cancels.ts";
import { workerMetrics } from "../../src/metrics.ts";
import { startConsumers } from "../../src/queues.ts";

export interface TestWorker {
  /** Names of jobs in the order in which they began. */
  begun: string[];
  cancelled: string[];
  /** The most that were in work at once. */
  most: () => number;
  /** As if messages were lost on their way, until it hears again. */
  deafen: () => Promise<unknown>;
  hear: () => Promise<unknown>;
  gauges: (queues: Parameters<ReturnType<typeof workerMetrics>["refresh"]>[0]) => Promise<string>;
  /** As if its machine lost power: what it does reaches nobody. */
  die: () => void;
  /** In order. */
  close: () => Promise<void>;
}

export async function startWorker(
  url: string,
  work: (job: Job, cancelled: AbortSignal) => Promise<JobResult>,
  concurrency = 1,
): Promise<TestWorker> {
  const config = loadConfig("worker", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: "key",
    REDIS_URL: url,
    PYTHON_CONCURRENCY: String(concurrency),
  });
  const log = createLog("worker", config);
  const redis = createRedis(config, log, { use: "commands" });
  const queueRedis = createRedis(config, log, { use: "blocking" });
  const subscriber = createRedis(config, log, { use: "blocking" });
  const cancels = new Cancels();
  await cancels.listen(subscriber);
  const registry = createRegistry();
  const metrics = workerMetrics(registry);
  const begun: string[] = [];
  const cancelled: string[] = [];
  let running = 0;
  let most = 0;
  let isDead = false;
  const handle = async (job: Job): Promise<JobResult> => {
    const name = job.job_id ?? job.execution_id;
    begun.push(name);
    most = Math.max(most, ++running);
    const { signal, done } = cancels.begin(name);
    signal.addEventListener("abort", () => cancelled.push(name));
    const result = await work(job, signal).finally(done);
    running--;
    return isDead ? new Promise(() => undefined) : result;
  };
  const context = { config, log, registry, lifecycle: { state: "running" } } as const;
  const consumers = await startConsumers({
    context,
    redis,
    queueRedis,
    subscriber,
    cancels,
    metrics,
    handle,
  });
  const disconnect = () => {
    for (const connection of [redis, queueRedis, subscriber]) connection.disconnect();
  };
  return {
    begun,
    cancelled,
    most: () => most,
    deafen: () => subscriber.unsubscribe(),
    hear: () => subscriber.subscribe(CANCEL_CHANNEL, JOB_HINTS_CHANNEL),
    gauges: async (queues) => {
      await metrics.refresh(queues, redis, consumers.running());
      return registry.metrics();
    },
    die: () => {
      isDead = true;
      disconnect();
    },
    close: async () => {
      if (isDead) return;
      await consumers.close();
      disconnect();
    },
  };
}
