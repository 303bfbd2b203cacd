/** Whether Redis does what a component needs: it answers, takes writes, and has the same time. */
import type { Redis } from "../redis/client.ts";
import { clockReason } from "./clock.ts";
import { type Check, shared } from "./readiness.ts";

const ANSWER_MS = 2000;
/** A write that changes nothing: nobody has this key. */
const NO_SUCH_KEY = "svc:no-such-key";

/** Our scripts use several keys at once, which there may be on different nodes. */
const IS_CLUSTER =
  "Redis is a cluster, and several nodes that share the keys cannot be used (docs/deploy.md)";

/** By the first word of an error of Redis. */
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

/** Two checks that ask Redis once. A clock that cannot be compared passes. */
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
    // Where it is not permitted, errors of other commands tell.
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
