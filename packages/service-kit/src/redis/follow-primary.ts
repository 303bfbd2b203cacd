/**
 * Disconnects from a primary as soon as sentinels name another one. An old primary may not know of the failover for up to ten seconds,
 * and everything written to it meanwhile is lost. ioredis has this, too (failoverDetector), but when that coincides with a reconnect,
 * its client ends for good.
 */
import { Redis } from "ioredis";
import type { watchedOptions } from "./options.ts";

const CHANNEL = "+switch-master";
const RETRY_MS = 1000;

type Watched = NonNullable<ReturnType<typeof watchedOptions>>;

/** Works for the life of the connection and of its duplicates. */
export function followPrimary(redis: Redis, watched: Watched): void {
  let last = "";
  const leave = () => redis.disconnect(true);
  const onMessage = (_channel: string, message: string) => {
    // Every sentinel sends the same message; act only on the first.
    if (message === last || !message.startsWith(`${watched.name} `)) return;
    last = message;
    if (redis.status === "ready") leave();
    // A connection in progress may already have the old address.
    else redis.once("ready", leave);
  };
  const listeners = watched.sentinels.map((sentinel) => listen(sentinel, watched, onMessage));
  redis.once("end", () => {
    for (const listener of listeners) listener.disconnect();
  });
  const duplicate = redis.duplicate.bind(redis);
  redis.duplicate = (override) => {
    const made = duplicate(override);
    followPrimary(made, watched);
    return made;
  };
}

function listen(
  { host, port }: { host: string; port: number },
  { sentinelPassword, sentinelTLS, connectTimeout }: Watched,
  onMessage: (channel: string, message: string) => void,
): Redis {
  const listener = new Redis({
    host,
    port,
    connectTimeout,
    ...(sentinelPassword ? { password: sentinelPassword } : {}),
    ...(sentinelTLS ? { tls: sentinelTLS } : {}),
    enableReadyCheck: false,
    maxRetriesPerRequest: null,
    retryStrategy: () => RETRY_MS,
  });
  // The connection to the Redis server logs its own errors.
  listener.on("error", () => undefined);
  listener.on("message", onMessage);
  // Rejects when the listener ends before the reply.
  listener.subscribe(CHANNEL).catch(() => undefined);
  return listener;
}
