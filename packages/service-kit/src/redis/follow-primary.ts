/**
 * Leaves a primary as soon as sentinels name another one: a server that handed over knows nothing of it for up to ten seconds, and what it
 * is told meanwhile is lost. ioredis has this, too (failoverDetector), but where its meets a reconnect the client ends for good.
 */
import { Redis } from "ioredis";
import type { watchedOptions } from "./options.ts";

const CHANNEL = "+switch-master";
const RETRY_MS = 1000;

type Watched = NonNullable<ReturnType<typeof watchedOptions>>;

/** For the life of the connection, and of those that are made of it. */
export function followPrimary(redis: Redis, watched: Watched): void {
  let last = "";
  const leave = () => redis.disconnect(true);
  const onMessage = (_channel: string, message: string) => {
    // Each sentinel says it.
    if (message === last || !message.startsWith(`${watched.name} `)) return;
    last = message;
    if (redis.status === "ready") leave();
    // It may have been told the address before.
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
  // The connection to the server says what is wrong.
  listener.on("error", () => undefined);
  listener.on("message", onMessage);
  // Rejects where the listener is ended before the answer.
  listener.subscribe(CHANNEL).catch(() => undefined);
  return listener;
}
