/** A node of a Redis cluster is named as what it is, before anything is lost on it: our scripts use several keys at once. */
import { createLog, createRedis, loadConfig, type Redis, redisChecks } from "@svc/service-kit";
import { startRedis } from "@svc/test-kit/components/redis";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { freePort } from "@svc/test-kit/system/free-ports";
import { expect, it } from "vitest";

const REASON = "Redis is a cluster, and several nodes that share the keys cannot be used (docs/deploy.md)";

async function withRedis(further: readonly string[], look: (redis: Redis) => Promise<void>): Promise<void> {
  const server = await startRedis({ further });
  const config = loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    REDIS_URL: server.url,
  });
  const redis = createRedis(config, createLog("api", config), { use: "commands" });
  try {
    await look(redis);
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

it("one node that holds all slots, or none of them", async () => {
  const port = String(await freePort());
  await withRedis(["--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes"], async (redis) => {
    expect(await redisChecks(redis).redis()).toBe(REASON);
    await redis.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    await expect.poll(() => redis.call("CLUSTER", "INFO")).toContain("cluster_state:ok");
    expect(await redisChecks(redis).redis()).toBe(REASON);
  });
});

it("one that does not permit INFO, by its other answers", async () => {
  const port = String(await freePort());
  await withRedis(["--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes"], async (redis) => {
    await redis.call("ACL", "SETUSER", "default", "-info");
    expect(await redisChecks(redis).redis()).toBe(REASON);
  });
});

it("a server by itself is none", async () => {
  await withRedis([], async (redis) => {
    expect(await redisChecks(redis).redis()).toBeUndefined();
    await redis.call("ACL", "SETUSER", "default", "-info");
    expect(await redisChecks(redis).redis()).toBeUndefined();
  });
});
