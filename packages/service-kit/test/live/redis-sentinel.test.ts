/** Redis behind a sentinel: connections go to the primary, and to the next one after a failover, without a restart. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog, createRedis, loadConfig, type Redis, redisChecks } from "@svc/service-kit";
import { startWatched, type Watched } from "@svc/test-kit/components/sentinels";
import { createAuthority, tlsFiles } from "@svc/test-kit/credentials/certificates";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { afterEach, expect, it } from "vitest";

const AFTER_MS = 20_000;

let watched: Watched;
const connections: Redis[] = [];
const folder = mkdtempSync(join(tmpdir(), "svc-test-sentinel-tls-"));

afterEach(async () => {
  for (const connection of connections.splice(0)) connection.disconnect();
  await watched?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function start(ca?: string, tls?: { cert: string; key: string; ca: string }) {
  const sentinelPassword = newSecret();
  watched = await startWatched({ password: newSecret(), sentinelPassword, ...(tls ? { tls } : {}) });
  const config = loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    REDIS_URL: watched.url,
    SVC_REDIS_SENTINEL_PASSWORD: sentinelPassword,
    ...(ca ? { REDIS_TLS_CA: ca } : {}),
  });
  const open = (use: "commands" | "blocking") => {
    const redis = createRedis(config, createLog("api", config), { use });
    connections.push(redis);
    return redis;
  };
  return { commands: open("commands"), blocking: open("blocking") };
}

const works = (redis: Redis) => expect.poll(() => redisChecks(redis).redis(), { timeout: AFTER_MS });

it("a primary that crashes: the replica serves, subscriptions and blocked commands go on", async () => {
  const { commands, blocking } = await start();
  const news: string[] = [];
  blocking.on("message", (_channel, message) => news.push(message));
  await blocking.subscribe("news");
  await commands.set("kept", "1");
  const waiting = commands.duplicate({ commandTimeout: AFTER_MS, maxRetriesPerRequest: null });
  waiting.on("error", () => undefined);
  connections.push(waiting);
  const blocked = waiting.blpop("list", 0);
  await watched.replicated();
  await watched.failOver();
  await works(commands).toBeUndefined();
  expect(await commands.get("kept")).toBe("1");
  const next = await watched.primary();
  await expect.poll(() => next.publish("news", "after"), { timeout: AFTER_MS }).toBe(1);
  await expect.poll(() => news).toContain("after");
  await next.rpush("list", "item");
  expect(await blocked).toEqual(["list", "item"]);
});

it("a primary that hands over: the one before, a replica now, is left", async () => {
  const { commands } = await start();
  await commands.set("kept", "1");
  await watched.replicated();
  await watched.handOver();
  const next = await watched.primary();
  const arrives = async () => {
    await commands.set("after", "1");
    return next.mget("kept", "after");
  };
  await expect.poll(arrives, { timeout: AFTER_MS }).toEqual(["1", "1"]);
  expect(await redisChecks(commands).redis()).toBeUndefined();
});

it("with TLS to both, certified under the addresses that the sentinel tells", async () => {
  const authority = await createAuthority();
  const files = tlsFiles(folder, authority.ca, await authority.issue(["127.0.0.1"]));
  const [cert, key, ca] = Object.values(files) as [string, string, string];
  const { commands } = await start(ca, { cert, key, ca });
  await commands.set("kept", "1");
  await watched.replicated();
  await watched.failOver();
  await works(commands).toBeUndefined();
  expect(await commands.get("kept")).toBe("1");
});

it("a wrong password of the sentinel is no way in", async () => {
  await start();
  const config = loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    REDIS_URL: watched.url,
    SVC_REDIS_SENTINEL_PASSWORD: newSecret(),
  });
  const redis = createRedis(config, createLog("api", config), { use: "commands" });
  connections.push(redis);
  await works(redis).toBe("Redis cannot be reached");
});
