/** What Redis keeps: keys that go by themselves (they expire, or are ended jobs, which the queue removes), and keys that would stay. */
import { Redis } from "ioredis";
import { round } from "../statistics.ts";

export interface RedisHeld {
  keys: number;
  /** Keys that nothing would ever remove, without the few that each queue has by a fixed name. */
  lastingKeys: number;
  /** MiB of the keys that go by themselves. */
  passingMib: number;
}

const PIPELINE = 1000;
/** What PTTL answers for a key that expired after it was listed, and for one that never expires. */
const GONE = -2;
const NO_EXPIRY = -1;
/** A job of a queue; at rest it is an ended one. Jobs of programs with tools are numbered within their program. */
export const ENDED_JOB = /^bull:[a-z-]+:[\w-]{21,}(\.\d+\.\d+)?$/;
/** What BullMQ keeps of a queue itself. Some of it is there only while jobs of a kind wait. */
const OF_QUEUE = /^bull:[a-z-]+:[a-z-]{1,20}$/;

export async function heldByRedis(socket: string): Promise<RedisHeld> {
  const redis = new Redis(socket);
  const held = { keys: 0, lastingKeys: 0, passingMib: 0 };
  try {
    for await (const keys of redis.scanStream({ count: PIPELINE })) {
      for (const { key, lifeMs, bytes } of await describe(redis, keys as string[])) {
        if (lifeMs === GONE) continue;
        held.keys++;
        if (lifeMs !== NO_EXPIRY || ENDED_JOB.test(key)) held.passingMib += bytes / 2 ** 20;
        else if (!OF_QUEUE.test(key)) held.lastingKeys++;
      }
    }
    return { ...held, passingMib: round(held.passingMib) };
  } finally {
    redis.disconnect();
  }
}

async function describe(
  redis: Redis,
  keys: readonly string[],
): Promise<{ key: string; lifeMs: number; bytes: number }[]> {
  const asked = redis.pipeline();
  for (const key of keys) asked.pttl(key).memory("USAGE", key);
  const answers = (await asked.exec()) ?? [];
  return keys.map((key, index) => ({
    key,
    lifeMs: Number(answers[2 * index]?.[1]),
    bytes: Number(answers[2 * index + 1]?.[1] ?? 0),
  }));
}
