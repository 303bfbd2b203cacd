/** The whole API in front of a real Redis, a real file server and a small consumer of jobs; callers hold tokens. */
import { type JobResult, RUNTIMES_KEY } from "@svc/contracts";
import { Cancellations, createLog, createRegistry, InnerClient, loadConfig } from "@svc/service-kit";
import { INTERNAL_TOKEN, startFileServer } from "@svc/test-kit/components/file-server";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { createIdentityProvider } from "../../src/auth/provider.ts";
import { PROGRAM_CANCELLATIONS } from "../../src/programmatic/labels.ts";
import { buildApi } from "../../src/server.ts";
import { OK, startJobs } from "./consumer.ts";

const RAN: JobResult = {
  ok: true,
  answer: {
    ...(OK.ok ? OK.answer : {}),
    code: 0,
    status: null,
    timings: { queue_ms: 1, setup_ms: 2, run_ms: 3, collect_ms: 4 },
    limits_reached: [{ limit: "processes", value: 64 }],
  },
};

export async function startIdentityApi(env: Record<string, string> = {}) {
  const signer = newSigner();
  const system = await startJobs();
  const fileServer = await startFileServer(system.server.url);
  const config = loadConfig("api", {
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
    REDIS_URL: system.server.url,
    FILE_SERVER_URL: fileServer.url,
    ...OPEN_LIMITS,
    ...env,
  });
  const logged: string[] = [];
  const log = createLog("api", config);
  const line = (level: string) => (fields: unknown, text?: string) =>
    void logged.push(JSON.stringify({ level, fields, text }));
  const listening = Object.assign(log, { info: line("info"), warn: line("warn"), error: line("error") });
  const client = new InnerClient({
    baseUrl: config.FILE_SERVER_URL,
    internalToken: config.SVC_INTERNAL_SERVICE_TOKEN,
    unreachable: "storage_unavailable",
  });
  const identity = await createIdentityProvider(config, log);
  const { redis, jobs } = system;
  const app = await buildApi({
    config,
    log: listening,
    registry: createRegistry(),
    lifecycle: { state: "running" },
    redis,
    fileServer: client,
    jobs,
    cancellations: new Cancellations(redis, PROGRAM_CANCELLATIONS),
    identity,
  });
  const python = { language: "python", version: "3.11.2", aliases: ["py"] };
  await redis.set(RUNTIMES_KEY, JSON.stringify([python]));
  const ran: { principal: unknown; output_namespace: string; run_memory_limit?: number | undefined }[] = [];
  await system.consume({
    work: async ({ principal, output_namespace, run_memory_limit }) => {
      ran.push({
        principal,
        output_namespace,
        ...(run_memory_limit === undefined ? {} : { run_memory_limit }),
      });
      return RAN;
    },
  });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return {
    url,
    signer,
    logged,
    /** Whom the executions that went through ran for. */
    ran,
    stop: async () => {
      await app.close();
      identity.close();
      await client.close();
      await system.stop();
      await fileServer.stop();
    },
  };
}

export type IdentityApi = Awaited<ReturnType<typeof startIdentityApi>>;
