/**
 * The sentinel form of REDIS_URL: `redis+sentinel://user:password@host:port,host:port/name/database`, with `rediss` for TLS.
 * User, password and database belong to the Redis server. `name` is the group that the sentinels watch.
 */
export interface SentinelAddress {
  isTls: boolean;
  username: string | undefined;
  password: string | undefined;
  sentinels: { host: string; port: number }[];
  name: string;
  database: number;
}

const SENTINEL_PORT = 26_379;
const MAX_SENTINELS = 16;
/** Each part ends at a character that it cannot contain, so matching takes linear time. */
const FORM =
  /^(rediss?)\+sentinel:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^@/]+)\/([A-Za-z0-9._-]{1,128})(?:\/(\d{1,4}))?$/;

/** Undefined for an address of any other form. */
export function sentinelAddress(text: string): SentinelAddress | undefined {
  const [, scheme, username = "", password = "", hosts = "", name = "", database = "0"] =
    FORM.exec(text) ?? [];
  const sentinels = hosts.split(",").flatMap((host) => sentinelOf(host) ?? []);
  const isWhole = sentinels.length === hosts.split(",").length && sentinels.length <= MAX_SENTINELS;
  if (scheme === undefined || !isWhole) return undefined;
  try {
    return {
      isTls: scheme === "rediss",
      username: decodeURIComponent(username) || undefined,
      password: decodeURIComponent(password) || undefined,
      sentinels,
      name,
      database: Number(database),
    };
  } catch {
    return undefined;
  }
}

function sentinelOf(text: string): { host: string; port: number } | undefined {
  const url = URL.parse(`redis://${text}`);
  if (!url?.hostname || url.pathname + url.search + url.hash !== "") return undefined;
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || SENTINEL_PORT) };
}

interface RedisSettings {
  REDIS_URL: string;
  REDIS_USERNAME: string;
  REDIS_PASSWORD: string;
  REDIS_TLS: boolean;
}

/**
 * REDIS_URL wins over the single variables. So a variable for a part that the URL lacks would silently have no effect, such as TLS. With
 * the address of a socket, user and password have an effect, and TLS is not needed.
 */
export function redisProblems(settings: RedisSettings): string[] {
  const { REDIS_URL: address, REDIS_USERNAME, REDIS_PASSWORD, REDIS_TLS } = settings;
  if (address === "" || address.startsWith("unix:")) return [];
  const watched = sentinelAddress(address);
  const { username, password } = watched ?? new URL(address);
  const isTls = watched?.isTls ?? address.startsWith("rediss:");
  const problems: string[] = [];
  if (REDIS_TLS && !isTls)
    problems.push("REDIS_TLS has no effect on REDIS_URL: begin its address with rediss");
  const lacks = { REDIS_USERNAME: REDIS_USERNAME && !username, REDIS_PASSWORD: REDIS_PASSWORD && !password };
  for (const [name, isLacking] of Object.entries(lacks))
    if (isLacking) problems.push(`${name} has no effect beside REDIS_URL: put it into the address`);
  return problems;
}
