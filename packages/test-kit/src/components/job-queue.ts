/** A producer and consumers whose work is the test's, over a Redis of their own. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Job, JobResult, QueueKind } from "@svc/contracts";
import { JOB_CANCELLATIONS, JobConsumer, JobProducer, openQueues, type StartedJob } from "@svc/job-queue";
import { Cancellations, type Config, createLog, createRedis, loadConfig, type Redis } from "@svc/service-kit";
import { newSecret } from "../credentials/secrets.ts";
import { type PrivateRedis, startRedis } from "./redis.ts";

export const never = () => new AbortController().signal;
export const OK: JobResult = { ok: true, answer: { stdout: "1\n" } };

export interface TestWorker {
  /** Ids of jobs in the order in which they started. */
  started: string[];
  /** How long each of them was in the queue, ms. */
  queueMs: number[];
  cancelled: string[];
  /** The most that ran at once. */
  most: () => number;
  /** As if cancellations were lost on their way. */
  deafen: () => Promise<unknown>;
  close: () => Promise<void>;
}

export interface WorkOptions {
  /** What a job does; the signal says that it was cancelled. */
  work: (job: Job, cancelled: AbortSignal) => Promise<JobResult>;
  concurrency?: number;
  /** Queues that jobs are taken from; both when it is absent. */
  kinds?: readonly QueueKind[];
  /** Is told what the worker warns of. */
  onWarning?: (message: string) => void;
}

export async function startJobs(env: Record<string, string> = {}) {
  const server: PrivateRedis = await startRedis();
  const config = loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    REDIS_URL: server.url,
    ...env,
  });
  const log = createLog("api", config);
  const connections: Redis[] = [];
  const connect = (use: "commands" | "blocking") => {
    const connection = createRedis(config, log, { use });
    connections.push(connection);
    return connection;
  };
  const closes: (() => Promise<unknown>)[] = [];

  const startProducer = async () => {
    const [redis, subscriber] = [connect("commands"), connect("blocking")];
    const jobs = new JobProducer(config, log, redis);
    await jobs.listen(subscriber);
    closes.push(() => jobs.close());
    return { jobs, redis, subscriber };
  };
  const consume = async (options: WorkOptions): Promise<TestWorker> => {
    const worker = await startWorker(config, options);
    closes.unshift(() => worker.close());
    return worker;
  };
  const { jobs, redis, subscriber } = await startProducer();
  const queues = openQueues(redis, log);
  return {
    config,
    server,
    redis,
    jobs,
    /** Of Python jobs. */
    queue: queues.python,
    counts: () => queues.python.counts(),
    /** As if announcements of results were lost on their way. */
    deafen: () => subscriber.unsubscribe(),
    subscriber,
    /** A producer that does not listen yet; the caller closes it. */
    openProducer: () => new JobProducer(config, log, redis),
    secondProducer: async () => (await startProducer()).jobs,
    consume,
    /** A worker in a process of its own, which answers a job after so long with its own name. */
    spawnWorker: async (workMs: number) => {
      const worker = await spawnWorker(server.url, workMs);
      closes.push(async () => worker.kill("SIGKILL"));
      return worker;
    },
    stop: async () => {
      await Promise.all(closes.map((close) => close()));
      await Promise.all([queues.python.close(), queues.other.close()]);
      for (const connection of connections) connection.disconnect();
      await server.stop();
    },
  };
}

export type TestJobs = Awaited<ReturnType<typeof startJobs>>;

export async function startWorker(
  config: Config,
  { work, concurrency = 8, kinds = ["python", "other"], onWarning }: WorkOptions,
): Promise<TestWorker> {
  const log = createLog("worker", config);
  if (onWarning !== undefined) log.warn = (_fields: unknown, message?: string) => onWarning(message ?? "");
  const redis = createRedis(config, log, { use: "blocking" });
  const subscriber = createRedis(config, log, { use: "blocking" });
  const cancellations = new Cancellations(redis, JOB_CANCELLATIONS);
  await cancellations.listen(subscriber);
  const started: string[] = [];
  const waits: number[] = [];
  const cancelled: string[] = [];
  let running = 0;
  let most = 0;
  const handle = async ({ job, queueMs, cancelled: signal }: StartedJob): Promise<JobResult> => {
    const id = job.job_id ?? job.execution_id;
    started.push(id);
    waits.push(queueMs);
    most = Math.max(most, ++running);
    if (signal.aborted) cancelled.push(id);
    else signal.addEventListener("abort", () => cancelled.push(id));
    return work(job, signal).finally(() => running--);
  };
  const shared = { redis, log, cancellations, handle, concurrency };
  const consumers = kinds.map((kind) => new JobConsumer({ kind, ...shared }));
  return {
    started,
    queueMs: waits,
    cancelled,
    most: () => most,
    deafen: () => subscriber.unsubscribe(),
    close: async () => {
      await Promise.all(consumers.map((consumer) => consumer.close()));
      for (const connection of [redis, subscriber]) connection.disconnect();
    },
  };
}

async function spawnWorker(url: string, workMs: number) {
  const program = new URL("./job-worker-process.ts", import.meta.url);
  const child = fork(program, [String(workMs)], { env: { ...process.env, REDIS_URL: url } });
  const started: string[] = [];
  child.on("message", (id) => started.push(id as string));
  await once(child, "message");
  started.pop();
  return {
    started,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    /** As if somebody set the clock of its machine. */
    setClockBack: (ms: number) => child.send(ms),
  };
}

/** Ends as cancelled when it is cancelled, else after the given time. */
export async function workFor(ms: number, cancelled: AbortSignal): Promise<JobResult> {
  await sleep(ms, undefined, { signal: cancelled }).catch(() => undefined);
  if (!cancelled.aborted) return OK;
  return { ok: false, error: { code: "execution_cancelled", status: 409, message: "It was cancelled." } };
}

/** Work that ends when it is told to. */
export function held() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { end: resolve, work: () => promise.then(() => OK) };
}

/** A caller that leaves. */
export function caller() {
  const controller = new AbortController();
  return { signal: controller.signal, leave: () => controller.abort(new Error("the client left")) };
}
