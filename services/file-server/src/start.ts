/** Starts the file server: its store, its cache, its port, its retention. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Config, type Context, createRedis, type Running } from "@svc/service-kit";
import { Objects } from "./objects.ts";
import { Quotas } from "./quota/quotas.ts";
import { Recount } from "./quota/recount.ts";
import { RecordCache } from "./record-cache.ts";
import { startRetention } from "./retention.ts";
import { buildApp } from "./server.ts";
import { createStore } from "./storage.ts";

/** Longest wait of a start for the storage check. The start succeeds without its result. */
const CHECK_MS = 1000;

export async function startFileServer(context: Context): Promise<Running> {
  const { config, log } = context;
  const store = await createStore(config);
  const redis = createRedis(config, log, { use: "commands" });
  const cache = new RecordCache(redis, config.SESSION_CACHE_TTL, log);
  const quotas = new Quotas(context, redis);
  const recount = new Recount(context, quotas, store, redis);
  const app = buildApp(
    context,
    store,
    redis,
    new Objects(store, cache, quotas, { maxBytes: maxBytes(config) }),
  );
  const checked = store
    .check()
    .catch((error: Error) => log.warn({ err: error }, "object storage is unavailable"));
  await Promise.race([checked, sleep(CHECK_MS, undefined, { ref: false })]);
  await app.listen({ port: config.FILE_SERVER_PORT, host: config.FILE_SERVER_HOST });
  const redisTime = () => quotas.ledger.now();
  const retention = startRetention({ config, log, store, cache, redisTime }, (isStopping) =>
    recount.run(isStopping),
  );
  return {
    stop: async () => {
      await app.close();
      await retention.stop();
      redis.disconnect();
    },
  };
}

function maxBytes(config: Config): number {
  return Math.max(
    config.MAX_FILE_SIZE,
    config.EGRESS_GATEWAY_MAX_FILE_BYTES,
    config.SVC_SESSION_STATE_MAX_BYTES,
  );
}
