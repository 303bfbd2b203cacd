/**
 * Connections to Redis. Commands wait a bounded time for a lost connection to come back, then fail with
 * `store_unavailable`; once it has been lost for so long, further commands wait less. The client itself never stops trying to
 * reconnect.
 */
import { readFileSync } from "node:fs";
import { ServiceError } from "@svc/contracts";
import { Redis, type RedisOptions } from "ioredis";
import type { Config } from "../config/variables.ts";
import type { Log } from "../log.ts";

export type { Redis } from "ioredis";

const MAX_RECONNECT_DELAY_MS = 500;
/** Below the 5 s that callers wait for the least: they shall read why. */
const COMMAND_TIMEOUT_MS = 3000;
/** Of commands while the connection has been lost for longer than that: long enough for a reconnect. */
const AWAY_TIMEOUT_MS = 1000;

export interface RedisPurpose {
  /** `commands`: bounded waits. `blocking`: for queues and subscriptions, which wait as long as they must. */
  use: "commands" | "blocking";
}

/** Connection options from REDIS_URL (redis, rediss or unix form) or from the single parts. */
export function redisOptions(config: Config): RedisOptions {
  if (config.REDIS_URL !== "") {
    const url = new URL(config.REDIS_URL);
    if (url.protocol === "unix:") return { path: decodeURIComponent(url.pathname) };
    const database = Number(url.pathname.slice(1) || "0");
    return {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: Number(url.port || "6379"),
      ...(url.username ? { username: decodeURIComponent(url.username) } : {}),
      ...(url.password ? { password: decodeURIComponent(url.password) } : {}),
      ...(database > 0 ? { db: database } : {}),
      ...(url.protocol === "rediss:" ? { tls: tlsOptions(config) } : {}),
    };
  }
  return {
    host: config.REDIS_HOST,
    port: config.REDIS_PORT,
    ...(config.REDIS_USERNAME ? { username: config.REDIS_USERNAME } : {}),
    ...(config.REDIS_PASSWORD ? { password: config.REDIS_PASSWORD } : {}),
    ...(config.REDIS_TLS ? { tls: tlsOptions(config) } : {}),
  };
}

function tlsOptions(config: Config): NonNullable<RedisOptions["tls"]> {
  return config.REDIS_TLS_CA ? { ca: readFileSync(config.REDIS_TLS_CA) } : {};
}

export function createRedis(config: Config, log: Log, { use }: RedisPurpose): Redis {
  const waiting: RedisOptions =
    use === "commands"
      ? { commandTimeout: COMMAND_TIMEOUT_MS, maxRetriesPerRequest: 20 }
      : { maxRetriesPerRequest: null };
  const options: RedisOptions = {
    ...redisOptions(config),
    ...waiting,
    retryStrategy: (attempt: number) => Math.min(50 * attempt, MAX_RECONNECT_DELAY_MS),
  };
  const redis = new Redis({ ...options, replyMapping: "legacy" });
  if (use === "commands") waitLessWhileAway(redis);
  awaitOwnSubscriptions(redis);
  let reported = false;
  redis.on("error", (error: Error) => {
    if (!reported) log.warn({ err: error.message }, "redis connection lost; reconnecting");
    reported = true;
  });
  redis.on("ready", () => {
    if (reported) log.info("redis connection restored");
    reported = false;
  });
  return redis;
}

/**
 * A connection that comes back subscribes once more by itself, and awaits nothing. When it is ended before the reply, as by a process that
 * stops, nobody would handle that; callers still see the failures of their own.
 */
function awaitOwnSubscriptions(redis: Redis): void {
  const subscribe = redis.subscribe.bind(redis) as (...args: unknown[]) => Promise<unknown>;
  const handled = (...args: unknown[]) => {
    const done = subscribe(...args);
    done.catch(() => undefined);
    return done;
  };
  redis.subscribe = handled as Redis["subscribe"];
}

function waitLessWhileAway(redis: Redis): void {
  let timer: NodeJS.Timeout | undefined;
  const waitFor = (timeoutMs: number): void => {
    clearTimeout(timer);
    timer = undefined;
    redis.options.commandTimeout = timeoutMs;
  };
  redis.on("close", () => {
    timer ??= setTimeout(() => waitFor(AWAY_TIMEOUT_MS), COMMAND_TIMEOUT_MS).unref();
  });
  redis.on("ready", () => waitFor(COMMAND_TIMEOUT_MS));
}

/** Runs a store operation; any failure of the store becomes `store_unavailable`. */
export async function storeCall<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError("store_unavailable", undefined, { cause: error });
  }
}

/** A full disk, a full memory, a replica: Redis answers, and changes nothing. */
const WRITE_REFUSALS = /^(MISCONF|OOM|READONLY) /;

export function isWriteRefusal(error: unknown): boolean {
  return error instanceof Error && WRITE_REFUSALS.test(error.message);
}

/** Whether Redis says that it takes no writes at the moment. Asked by a write that changes nothing. Never rejects. */
export async function refusesWrites(redis: Redis): Promise<boolean> {
  try {
    await redis.setrange("svc:no-such-key", 0, "");
    return false;
  } catch (error) {
    return isWriteRefusal(error);
  }
}
