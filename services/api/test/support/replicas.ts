/** Several replicas of the API, each with its own connections, before one Redis, one file server and a worker of the test. */
import { once } from "node:events";
import { JobProducer } from "@svc/job-queue";
import {
  Cancellations,
  type Config,
  createLog,
  createRedis,
  createRegistry,
  type HttpServer,
  InnerClient,
  type Lifecycle,
  loadConfig,
  type Registry,
} from "@svc/service-kit";
import { INTERNAL_TOKEN, startFileServer } from "@svc/test-kit/components/file-server";
import { createIdentityProvider } from "../../src/auth/provider.ts";
import { PROGRAM_CANCELLATIONS } from "../../src/programmatic/labels.ts";
import { buildApi } from "../../src/server.ts";
import { startJobs } from "./consumer.ts";

export interface Replica {
  url: string;
  registry: Registry;
  lifecycle: Lifecycle;
  stop: () => Promise<void>;
}

/** `connections`: of each replica to the file server. */
export async function startReplicas(count: number, env: Record<string, string> = {}, connections?: number) {
  const made = await startJobs();
  const fileServer = await startFileServer(made.server.url);
  const settings = {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    REDIS_URL: made.server.url,
    FILE_SERVER_URL: fileServer.url,
    // No tool call server: nobody listens there, whatever runs on this machine.
    TOOL_CALL_SERVER_URL: "http://127.0.0.1:1",
    SERVICE_PORT: "0",
    SERVICE_HOST: "127.0.0.1",
    ...env,
  };
  const replicas = await Promise.all(
    Array.from({ length: count }, () => startReplica(loadConfig("api", settings), connections)),
  );
  return {
    ...made,
    settings,
    replicas,
    urls: replicas.map(({ url }) => url),
    stop: async () => {
      await Promise.all(replicas.map(({ stop }) => stop()));
      await fileServer.stop();
      await made.stop();
    },
  };
}

export type Replicas = Awaited<ReturnType<typeof startReplicas>>;

async function startReplica(config: Config, connections?: number): Promise<Replica> {
  const log = createLog("api", config);
  const [redis, subscriber] = [
    createRedis(config, log, { use: "commands" }),
    createRedis(config, log, { use: "blocking" }),
  ];
  const fileServer = new InnerClient({
    baseUrl: config.FILE_SERVER_URL,
    internalToken: config.SVC_INTERNAL_SERVICE_TOKEN,
    unreachable: "storage_unavailable",
    ...(connections !== undefined && { connections }),
  });
  const registry = createRegistry();
  const lifecycle: Lifecycle = { state: "running" };
  const identity = await createIdentityProvider(config, log);
  const jobs = new JobProducer(config, log, redis);
  if (redis.status !== "ready") await once(redis, "ready");
  const cancellations = new Cancellations(redis, PROGRAM_CANCELLATIONS);
  await Promise.all([jobs.listen(subscriber), cancellations.listen(subscriber)]);
  const app: HttpServer = await buildApi({
    config,
    log,
    registry,
    lifecycle,
    redis,
    fileServer,
    jobs,
    cancellations,
    identity,
  });
  return {
    url: `${await app.listen({ port: 0, host: "127.0.0.1" })}/v1`,
    registry,
    lifecycle,
    stop: async () => {
      await app.close();
      identity.close();
      await jobs.close();
      await fileServer.close();
      for (const connection of [redis, subscriber]) connection.disconnect();
    },
  };
}

const LIMIT_HEADERS = [
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
  "ratelimit-policy",
  "retry-after",
] as const;

/** The five headers of the limits, as far as the answer has them. */
export function limitHeaders(response: Response): Record<string, string> {
  return Object.fromEntries(
    LIMIT_HEADERS.flatMap((name) => {
      const value = response.headers.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
}
