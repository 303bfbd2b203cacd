/** The Redis of a running system. */
import { createLog, createRedis, loadConfig, type Redis } from "@svc/service-kit";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import type { System } from "@svc/test-kit/system/system";

/** To be disconnected at the end. */
export function openStore({ instance }: Pick<System, "instance">): Redis {
  const config = loadConfig("file-server", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    STORAGE_DRIVER: "fs",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    REDIS_URL: `unix://${instance.redisSocket}`,
  });
  return createRedis(config, createLog("file-server", config), { use: "commands" });
}
