/** Redis connection options from the configuration. */
import { readFileSync } from "node:fs";
import type { RedisOptions } from "ioredis";
import { sentinelAddress } from "../config/redis-address.ts";
import type { Config } from "../config/variables.ts";

/** A sentinel or server that does not answer must not delay the query to the next one for long. */
const SENTINEL_TIMEOUT_MS = 2000;
const RECONNECT_AND_RESEND = 2;

/** Connection options from REDIS_URL (redis, rediss, sentinel or unix form) or from the single variables. */
export function redisOptions(config: Config): RedisOptions {
  const watched = watchedOptions(config);
  if (watched !== undefined) return watched;
  if (config.REDIS_URL !== "") {
    const url = new URL(config.REDIS_URL);
    const login = loginOf({
      username: decodeURIComponent(url.username) || config.REDIS_USERNAME,
      password: decodeURIComponent(url.password) || config.REDIS_PASSWORD,
    });
    if (url.protocol === "unix:") return { path: decodeURIComponent(url.pathname), ...login };
    const database = Number(url.pathname.slice(1) || "0");
    return {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: Number(url.port || "6379"),
      ...login,
      ...(database > 0 ? { db: database } : {}),
      ...(url.protocol === "rediss:" ? { tls: tlsOptions(config) } : {}),
    };
  }
  return {
    host: config.REDIS_HOST,
    port: config.REDIS_PORT,
    ...loginOf({ username: config.REDIS_USERNAME, password: config.REDIS_PASSWORD }),
    ...(config.REDIS_TLS ? { tls: tlsOptions(config) } : {}),
  };
}

type Login = Pick<RedisOptions, "username" | "password">;

/** Redis refuses an empty name, so what is empty is left out. */
function loginOf({ username, password }: Login): Login {
  return { ...(username ? { username } : {}), ...(password ? { password } : {}) };
}

function tlsOptions(config: Config): NonNullable<RedisOptions["tls"]> {
  return config.REDIS_TLS_CA ? { ca: readFileSync(config.REDIS_TLS_CA) } : {};
}

/**
 * The options for sentinels, which name the primary at each new connection. A demoted primary closes its connections or refuses
 * writes. Undefined when REDIS_URL names no sentinels.
 */
export function watchedOptions(config: Config) {
  const watched = sentinelAddress(config.REDIS_URL);
  if (watched === undefined) return undefined;
  const { sentinels, name, username, password, database, isTls } = watched;
  const tls = isTls ? tlsOptions(config) : undefined;
  return {
    sentinels,
    name,
    connectTimeout: SENTINEL_TIMEOUT_MS,
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    // The primary has become a replica. It did not execute the refused command, so sending it again is safe.
    reconnectOnError: ({ message }) => (message.startsWith("READONLY ") ? RECONNECT_AND_RESEND : false),
    ...(config.SVC_REDIS_SENTINEL_PASSWORD ? { sentinelPassword: config.SVC_REDIS_SENTINEL_PASSWORD } : {}),
    ...loginOf({ username, password }),
    ...(database > 0 ? { db: database } : {}),
    ...(tls ? { tls, sentinelTLS: tls, enableTLSForSentinelMode: true } : {}),
  } satisfies RedisOptions;
}
