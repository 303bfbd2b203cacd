/** Starts the file server: its store, its cache, its port, its retention. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Context, createRedis, type Running } from "@svc/service-kit";
import { RecordCache } from "./record-cache.ts";
import { startRetention } from "./retention.ts";
import { buildApp } from "./server.ts";
import { createStore } from "./storage.ts";

/** How long a start waits for the check of storage. The start succeeds without it. */
const CHECK_MS = 1000;

export async function startFileServer(context: Context): Promise<Running> {
  const { config, log } = context;
  const store = await createStore(config);
  const redis = createRedis(config, log, { use: "commands" });
  const cache = new RecordCache(redis, config.SESSION_CACHE_TTL, log);
  const app = buildApp(context, store, redis, cache);
  const checked = store
    .check()
    .catch((error: Error) => log.warn({ err: error }, "object storage is unavailable"));
  await Promise.race([checked, sleep(CHECK_MS, undefined, { ref: false })]);
  await app.listen({ port: config.FILE_SERVER_PORT, host: config.FILE_SERVER_HOST });
  const retention = startRetention(config, log, store, cache);
  return {
    stop: async () => {
      await app.close();
      await retention.stop();
      redis.disconnect();
    },
  };
}
