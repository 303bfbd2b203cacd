/** Builds the OpenAPI document as text from the routes themselves, without any connection. */
import { randomBytes } from "node:crypto";
import { JobProducer } from "@svc/job-queue";
import { Cancellations, createLog, createRegistry, InnerClient, loadConfig } from "@svc/service-kit";
import { Redis } from "ioredis";
import { localIdentity } from "../auth/provider.ts";
import { PROGRAM_CANCELLATIONS } from "../programmatic/labels.ts";
import { buildApi } from "../server.ts";
import { documentOf } from "./generate.ts";

export async function openApiDocument(): Promise<string> {
  const config = loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: randomBytes(32).toString("hex"),
  });
  const log = createLog("api", config);
  const redis = new Redis({ lazyConnect: true });
  const jobs = new JobProducer(config, log, redis);
  const app = await buildApi({
    config,
    log,
    registry: createRegistry(),
    lifecycle: { state: "running" },
    redis,
    fileServer: new InnerClient({ baseUrl: config.FILE_SERVER_URL, unreachable: "storage_unavailable" }),
    jobs,
    cancellations: new Cancellations(redis, PROGRAM_CANCELLATIONS),
    identity: localIdentity,
  });
  await app.ready();
  const document = documentOf(app);
  await jobs.close();
  redis.disconnect();
  return document;
}
