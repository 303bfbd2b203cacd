/** Traffic of requests between components, and their work in Redis, from counters of the kernel and of Redis. */
import { execFileSync } from "node:child_process";
import { Redis } from "ioredis";
import { ENDED_JOB } from "../../bench/soak/redis.ts";

export interface StoreCount {
  /** Commands, including those that scripts call. */
  commands: number;
  inBytes: number;
  outBytes: number;
}

/** Bytes of each open connection, by the address of its other end. */
export type Connections = ReadonlyMap<string, number>;

/** Bytes that a component received from its callers and sent to them. */
export function connectionsAt(port: number): Connections {
  const text = execFileSync("ss", ["-tinH", "state", "established", `( sport = :${port} )`], {
    encoding: "utf8",
  });
  // A line of addresses, then an indented one of counters.
  const rows = text.split(/\n(?=\S)/).map((row): [string, number] => {
    const peer = /^\S+\s+\S+\s+\S+\s+(\S+)/.exec(row)?.[1] ?? "";
    const counts = [...row.matchAll(/\bbytes_(?:sent|received):(\d+)/g)];
    return [peer, counts.reduce((sum, [, bytes]) => sum + Number(bytes), 0)];
  });
  return new Map(rows);
}

/** Bytes between two readings. Traffic of connections that were closed in between is not known. */
export function bytesBetween(before: Connections, after: Connections): number {
  let total = 0;
  for (const [peer, bytes] of after) total += Math.max(0, bytes - (before.get(peer) ?? 0));
  return total;
}

export async function countStore(redis: Redis): Promise<StoreCount> {
  const text = await redis.info("stats");
  const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(text)?.[1]);
  return {
    commands: field("total_commands_processed"),
    inBytes: field("total_net_input_bytes"),
    outBytes: field("total_net_output_bytes"),
  };
}

const PAGE = 1000;
/** How long the queue keeps an ended job. */
const ENDED_JOB_SECONDS = 120;
/** What PTTL answers for a key that expired after it was listed, and for one that never expires. */
const GONE = -2;
const NO_EXPIRY = -1;

export async function keysOf(redis: Redis): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const keys of redis.scanStream({ count: PAGE }))
    for (const key of keys) found.add(key as string);
  return found;
}

/**
 * Bytes of every key but these, times the seconds that it stays. Per request, this is the memory that a rate of requests
 * keeps in Redis, divided by the rate. Keys that never expire are left out, except for ended jobs.
 */
export async function byteSeconds(redis: Redis, except: ReadonlySet<string>): Promise<number> {
  let total = 0;
  for (const key of await keysOf(redis)) {
    if (except.has(key)) continue;
    const [lifeMs, bytes] = await Promise.all([redis.pttl(key), redis.memory("USAGE", key)]);
    if (lifeMs === GONE || bytes === null) continue;
    total += bytes * (lifeMs === NO_EXPIRY ? lifeOfLasting(key) : lifeMs / 1000);
  }
  return total;
}

const lifeOfLasting = (key: string) => (ENDED_JOB.test(key) ? ENDED_JOB_SECONDS : 0);

export const storeOf = (socket: string) => new Redis(socket);
