/** The API's jobs and a small worker of the test, over a Redis of their own. */
import { setTimeout as sleep } from "node:timers/promises";
import { CANCEL_CHANNEL, type Job, type JobResult, newId, QUEUE_NAMES, QUEUE_OPTIONS } from "@svc/contracts";
import { createLog, createRedis, loadConfig } from "@svc/service-kit";
import { Queue, Worker } from "bullmq";
import { type PrivateRedis, startRedis } from "../../../../packages/service-kit/test/support/redis.ts";
import { newSecret } from "../../../../packages/service-kit/test/support/secrets.ts";
import { Idempotency } from "../../src/exec/idempotency.ts";
import { Jobs } from "../../src/exec/jobs.ts";

export const never = () => new AbortController().signal;
export const OK: JobResult = { ok: true, answer: { stdout: "1\n" } };

export interface ConsumerOptions {
  /** What a job does; the signal says that it was cancelled. */
  work: (job: Job, cancelled: AbortSignal) => Promise<JobResult>;
  /** False: no notices are sent, as if all were lost. */
  notices?: boolean;
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
  const connect = (use: "commands" | "blocking") => createRedis(config, log, { use });
  const [redis, subscriber, own] = [connect("commands"), connect("blocking"), connect("commands")];
  const jobs = new Jobs(config, log, redis);
  await jobs.listen(subscriber);
  const stops: (() => Promise<unknown>)[] = [];

  /** Consumes the queue of Python jobs; notes which ran and which were cancelled. */
  const consume = async ({ work, notices = true }: ConsumerOptions) => {
    const seen = { started: [] as string[], cancelled: [] as string[] };
    const running = new Map<string, AbortController>();
    const connections = [connect("blocking"), connect("blocking")] as const;
    const [cancels, blocking] = connections;
    cancels.on("message", (_channel: string, id: string) => {
      seen.cancelled.push(id);
      running.get(id)?.abort();
    });
    await cancels.subscribe(CANCEL_CHANNEL);
    const worker = new Worker<Job, JobResult>(
      QUEUE_NAMES.python,
      async ({ data }) => {
        const controller = new AbortController();
        running.set(data.execution_id, controller);
        seen.started.push(data.execution_id);
        const tell = (notice: object) =>
          notices
            ? own.publish(data.reply_to ?? "", JSON.stringify({ job: data.execution_id, ...notice }))
            : 0;
        const result = await work(data, controller.signal);
        await tell({ result });
        return result;
      },
      { connection: blocking as never, concurrency: 8 },
    );
    worker.on("error", () => undefined);
    await worker.waitUntilReady();
    const stop = async () => {
      await worker.close(true);
      for (const connection of connections) connection.disconnect();
    };
    stops.push(stop);
    return { ...seen, stop };
  };

  return {
    config,
    server,
    redis,
    jobs,
    idempotency: new Idempotency(redis),
    queue: new Queue(QUEUE_NAMES.python, { connection: own as never, ...QUEUE_OPTIONS }).on(
      "error",
      () => undefined,
    ),
    consume,
    stop: async () => {
      await Promise.all(stops.map((stop) => stop()));
      await jobs.close();
      for (const connection of [redis, subscriber, own]) connection.disconnect();
      await server.stop();
    },
  };
}

export type TestJobs = Awaited<ReturnType<typeof startJobs>>;

export function jobOf(change: Partial<Job> = {}): Job {
  return {
    v: 1,
    request_id: "request",
    execution_id: newId(),
    session_id: newId(),
    principal: { tenantId: "tenant", userId: "user" },
    output_namespace: "tenant:user:user",
    language: "python",
    version: "*",
    code: "",
    args: [],
    run_timeout: 1000,
    files: [],
    enqueued_at: Date.now(),
    ...change,
  };
}

/** Ends as cancelled when it is cancelled, else after the given time. */
export async function workFor(ms: number, cancelled: AbortSignal): Promise<JobResult> {
  await sleep(ms, undefined, { signal: cancelled }).catch(() => undefined);
  if (!cancelled.aborted) return OK;
  return { ok: false, error: { code: "execution_cancelled", status: 409, message: "It was cancelled." } };
}
