/**
 * Connections to Redis. When the connection is lost, commands wait for a bounded time, then fail; `storeCall` turns that into
 * `store_unavailable`. Once it has been lost for that time, further commands wait less. The client never stops reconnecting.
 */
import { ServiceError } from "@svc/contracts";
import { Redis, type RedisOptions } from "ioredis";
import type { Config } from "../config/variables.ts";
import type { Log } from "../log.ts";
import { errorText } from "../logged-error.ts";
import { followPrimary } from "./follow-primary.ts";
import { redisOptions, watchedOptions } from "./options.ts";

export type { Redis } from "ioredis";

const MAX_RECONNECT_DELAY_MS = 500;
/** Below 5 s, the shortest time that callers wait, so that they still get the error. */
const COMMAND_TIMEOUT_MS = 3000;
/** Timeout of commands once the connection has been lost for longer than that. Long enough for a reconnect. */
const AWAY_TIMEOUT_MS = 1000;

export interface RedisPurpose {
  /** `commands`: commands wait for a bounded time. `blocking`: for queues and subscriptions, which wait without a limit. */
  use: "commands" | "blocking";
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
  const watched = watchedOptions(config);
  if (watched !== undefined) followPrimary(redis, watched);
  let reported = false;
  redis.on("error", (error: Error) => {
    if (!reported) log.warn({ err: errorText(error) }, "redis connection lost; reconnecting");
    reported = true;
  });
  redis.on("ready", () => {
    if (reported) log.info("redis connection restored");
    reported = false;
  });
  return redis;
}

/**
 * Prevents unhandled rejections. After a reconnect, ioredis subscribes again by itself and does not await the result. It rejects
 * when the connection ends before the reply, for example while the process stops. Callers still see failures of their own calls.
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

/** Runs a Redis operation. Any error other than ServiceError becomes `store_unavailable`. */
export async function storeCall<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError("store_unavailable", undefined, { cause: error });
  }
}

/** Redis refuses writes because of a full disk, full memory, or because it is a replica. */
const WRITE_REFUSALS = /^(MISCONF|OOM|READONLY) /;

function isWriteRefusal(error: unknown): boolean {
  return error instanceof Error && WRITE_REFUSALS.test(error.message);
}

/** Whether Redis currently refuses writes. Tries a write that changes nothing. Never rejects. */
export async function refusesWrites(redis: Redis): Promise<boolean> {
  try {
    await redis.setrange("svc:no-such-key", 0, "");
    return false;
  } catch (error) {
    return isWriteRefusal(error);
  }
}
