/** Checks that Redis answers, accepts writes, and has about the same time as this machine. */
import type { Redis } from "../redis/client.ts";
import { clockReason } from "./clock.ts";
import { type Check, shared } from "./readiness.ts";

const ANSWER_MS = 2000;
/** A key that does not exist, for a write that changes nothing. */
const NO_SUCH_KEY = "svc:no-such-key";

/** The Lua scripts use several keys at once, which a cluster may keep on different nodes. */
const IS_CLUSTER =
  "Redis is a cluster, and several nodes that share the keys cannot be used (docs/deploy.md)";

/** The reasons by the first word of a Redis error. */
const REFUSALS: Readonly<Record<string, string>> = {
  MOVED: IS_CLUSTER,
  CLUSTERDOWN: IS_CLUSTER,
  MISCONF: "Redis cannot write to its disk; is the disk full?",
  OOM: "Redis takes no writes: its memory is full",
  READONLY: "Redis takes no writes: it is a replica",
  LOADING: "Redis is still loading its data",
  NOAUTH: "Redis refuses this component's password",
  WRONGPASS: "Redis refuses this component's password",
  NOPERM: "Redis does not permit this component what it needs",
};

interface Asked {
  redis?: string | undefined;
  clock?: string | undefined;
}

/** Two checks that share one query to Redis. The clock check passes when the clocks cannot be compared. */
export function redisChecks(redis: Redis): { redis: Check; clock: Check } {
  const ask = shared(() => askRedis(redis));
  return { redis: async () => (await ask()).redis, clock: async () => (await ask()).clock };
}

async function askRedis(redis: Redis): Promise<Asked> {
  const late = Promise.withResolvers<Asked>();
  const timer = setTimeout(() => late.resolve({ redis: silence(redis) }), ANSWER_MS);
  return Promise.race([answers(redis), late.promise]).finally(() => clearTimeout(timer));
}

async function answers(redis: Redis): Promise<Asked> {
  const beforeMs = Date.now();
  const [ping, write, cluster, time] = await Promise.allSettled([
    redis.ping(),
    redis.setrange(NO_SUCH_KEY, 0, ""),
    // Where INFO is not permitted, the errors of the other commands reveal a cluster.
    redis.info("cluster"),
    redis.time().then(([seconds, micros]) => ({
      beforeMs,
      toldMs: Number(seconds) * 1000 + Number(micros) / 1000,
      afterMs: Date.now(),
    })),
  ]);
  const refused = [ping, write].find(({ status }) => status === "rejected");
  const isCluster = cluster.status === "fulfilled" && /^cluster_enabled:1\r?$/m.test(cluster.value);
  return {
    redis: isCluster ? IS_CLUSTER : refused && refusalOf((refused as PromiseRejectedResult).reason, redis),
    clock: time.status === "fulfilled" ? clockReason(time.value, "Redis's") : undefined,
  };
}

function refusalOf(error: unknown, redis: Redis): string {
  const [word = ""] = String((error as Error | null)?.message).split(" ", 1);
  return REFUSALS[word] ?? (/^[A-Z]+$/.test(word) ? "Redis refuses commands" : silence(redis));
}

const silence = ({ status }: Redis) =>
  status === "ready" ? "Redis does not answer" : "Redis cannot be reached";
