/** What Redis keeps: what passes by itself (it expires, or is an ended job, which the queue removes), and what would stay. */
import { Redis } from "ioredis";
import { round } from "../statistics.ts";

export interface RedisHeld {
  keys: number;
  /** Keys that nothing would ever remove, without the few that each queue has by a fixed name. */
  lastingKeys: number;
  /** MiB of the keys that pass. */
  passingMib: number;
}

const PIPELINE = 1000;
/** A job of a queue, at rest an ended one; jobs of programs with tools are numbered within their program. */
const ENDED_JOB = /^bull:[a-z-]+:[\w-]{21,}(\.\d+\.\d+)?$/;
/** What BullMQ keeps of a queue itself. Some of it is there only while jobs of a kind wait. */
const OF_QUEUE = /^bull:[a-z-]+:[a-z-]{1,20}$/;

export async function heldByRedis(socket: string): Promise<RedisHeld> {
  const redis = new Redis(socket);
  const held = { keys: 0, lastingKeys: 0, passingMib: 0 };
  try {
    for await (const keys of redis.scanStream({ count: PIPELINE })) {
      for (const { key, passes, bytes } of await describe(redis, keys as string[])) {
        held.keys++;
        if (passes) held.passingMib += bytes / 2 ** 20;
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
): Promise<{ key: string; passes: boolean; bytes: number }[]> {
  const asked = redis.pipeline();
  for (const key of keys) asked.pttl(key).memory("USAGE", key);
  const answers = (await asked.exec()) ?? [];
  return keys.map((key, index) => ({
    key,
    passes: ENDED_JOB.test(key) || Number(answers[2 * index]?.[1]) >= 0,
    bytes: Number(answers[2 * index + 1]?.[1] ?? 0),
  }));
}
