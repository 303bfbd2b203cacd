/** The OpenAPI document as text, made from the routes themselves. Connects to nothing. */
import { createLog, createRegistry, InnerClient, loadConfig } from "@svc/service-kit";
import { Redis } from "ioredis";
import { Jobs } from "../exec/jobs.ts";
import { buildApi } from "../server.ts";

export async function openApiDocument(): Promise<string> {
  const config = loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: "-".repeat(32),
  });
  const log = createLog("api", config);
  const redis = new Redis({ lazyConnect: true });
  const app = await buildApi({
    config,
    log,
    registry: createRegistry(),
    lifecycle: { state: "running" },
    redis,
    fileServer: new InnerClient({ baseUrl: config.FILE_SERVER_URL, unreachable: "storage_unavailable" }),
    jobs: new Jobs(config, log, redis),
  });
  await app.ready();
  const document = JSON.stringify(app.swagger(), null, 2);
  redis.disconnect();
  return `${document}\n`;
}
