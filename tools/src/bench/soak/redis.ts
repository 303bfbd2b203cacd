/** What Redis keeps: what passes by itself (it expires, or is an ended job, which the queue removes), and what would stay. */
import { Redis } from "ioredis";
import { round } from "../statistics.ts";

export interface RedisHeld {
  keys: number;
  /** Keys that nothing would ever remove. */
  lastingKeys: number;
  /** MiB of the keys that pass. */
  passingMib: number;
}

const PIPELINE = 1000;
/**
 * A job of a queue, at rest an ended one (those of programs with tools are numbered within their program), or one of the two
 * keys that BullMQ makes and removes while it looks for jobs.
 */
const PASSES = /^bull:[a-z-]+:([\w-]{21,}(\.\d+\.\d+)?|marker|stalled)$/;

export async function heldByRedis(socket: string): Promise<RedisHeld> {
  const redis = new Redis(socket);
  const held = { keys: 0, lastingKeys: 0, passingMib: 0 };
  try {
    for await (const keys of redis.scanStream({ count: PIPELINE })) {
      for (const { passes, bytes } of await describe(redis, keys as string[])) {
        held.keys++;
        if (passes) held.passingMib += bytes / 2 ** 20;
        else held.lastingKeys++;
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
): Promise<{ passes: boolean; bytes: number }[]> {
  const asked = redis.pipeline();
  for (const key of keys) asked.pttl(key).memory("USAGE", key);
  const answers = (await asked.exec()) ?? [];
  return keys.map((key, index) => ({
    passes: PASSES.test(key) || Number(answers[2 * index]?.[1]) >= 0,
    bytes: Number(answers[2 * index + 1]?.[1] ?? 0),
  }));
}
