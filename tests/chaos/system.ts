/**
 * A system for chaos: each component a process of its own, every connection between two of them through our links, the stored objects
 * and the data folder on small file systems, over a Redis that survives a crash.
 */
import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Instance, resolveInstance } from "@svc/cli/instance";
import { type Unprivileged, userOf } from "@svc/cli/users";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { freePort, freePorts } from "@svc/test-kit/system/free-ports";
import { STEADY_POOL } from "@svc/test-kit/system/holdings";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { SmallDisk } from "@svc/test-kit/system/small-disk";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { Clocks } from "./clocks.ts";
import { Links } from "./links.ts";
import type { Disk } from "./schedule.ts";

export const SLOTS = 4;
/** Executions of the caller at once; the load has fewer but for its bursts. */
export const SEATS = 20;
export const MOST_CALLS = 6;
export const RUN_MS = 8000;
/** The layers of deadlines around a run, short enough that a test sees their end. */
export const DEADLINES = {
  SANDBOX_COMPILE_TIMEOUT: 1000,
  JOB_PRIME_ALLOWANCE_MS: 8000,
  JOB_POSTPROCESS_ALLOWANCE_MS: 8000,
  JOB_WAIT_GRACE_MS: 3000,
  JOB_QUEUE_WAIT_MS: 20_000,
};
/** Their sum: no request of a run waits longer. Commands to Redis and calls between components before and after it have bounds of their own. */
export const LONGEST_MS =
  RUN_MS + Object.values(DEADLINES).reduce((sum, ms) => sum + ms, 0) + DEADLINES.JOB_WAIT_GRACE_MS + 30_000;

/** How long a program stays paused in memory: longer than the load answers one. */
const PAUSED_MS = 20_000;
const READY_MS = 60_000;
/** Where components listen; the others know them by 127.0.0.1, where the links are. */
const THERE = "127.0.0.2";
const BEHIND_LINKS = {
  runner: ["PORT", "RUNNER_HOST"],
  "file-server": ["FILE_SERVER_PORT", "FILE_SERVER_HOST"],
  "tool-call-server": ["TOOL_CALL_SERVER_PORT", "TOOL_CALL_SERVER_HOST"],
  "egress-gateway": ["EGRESS_GATEWAY_PORT", "EGRESS_GATEWAY_HOST"],
} as const;
const WITH_LINKS: readonly Unprivileged[] = [
  "api",
  "worker",
  "runner",
  "egress-gateway",
  "tool-call-server",
  "file-server",
];

export interface ChaosSystem {
  system: System;
  redis: PrivateRedis;
  links: Links;
  disks: Record<Disk, SmallDisk>;
  clocks: Clocks;
  /** Ends it, and answers what it left. */
  stop: () => Promise<string[]>;
}

export async function startChaosSystem(): Promise<ChaosSystem> {
  const disks = {
    objects: new SmallDisk("size=64m"),
    data: new SmallDisk("size=128m"),
  };
  const redis = await startRedis({ kept: true });
  const redisPort = await freePort();
  const env = {
    ...(await freePorts()),
    ...Object.fromEntries(Object.values(BEHIND_LINKS).map(([, host]) => [host, THERE])),
    ...OPEN_PROGRAM_LIMITS,
    ...ONE_BY_ONE,
    ...STEADY_POOL,
    ...Object.fromEntries(Object.entries(DEADLINES).map(([name, ms]) => [name, String(ms)])),
    SVC_MAX_CONCURRENT_EXECUTIONS: String(SEATS),
    SANDBOX_MAX_CONCURRENT_JOBS: String(SLOTS),
    PTC_MAX_CALLS: String(MOST_CALLS),
    // A program whose caller never learnt of it goes with this.
    TOOL_CALL_REQUEST_TIMEOUT: String(PAUSED_MS),
    SVC_PERSIST_SESSIONS: "true",
    SVC_DATA_DIR: makeFolder(disks.data, "data"),
    STORAGE_DIR: join(disks.objects.folder, "objects"),
    REDIS_URL: `redis://127.0.0.1:${redisPort}`,
  };
  const instance = resolveInstance(
    { "data-dir": undefined, "port-offset": undefined },
    { ...process.env, ...env },
  );
  const links = linksOf(instance);
  const clocks = await Clocks.make(instance);
  await links.open({ name: "redis", port: redisPort, at: { path: redis.socket } });
  const end = async () => {
    await links.close();
    await redis.stop();
    for (const disk of Object.values(disks)) disk.remove();
    clocks.remove();
  };
  const starting = startSystem({ env, through: clocks.through });
  try {
    const [system] = await Promise.all([starting, openAll(links, instance, env)]);
    const stop = async () => {
      const left = await system.stop();
      await end();
      return left;
    };
    return { system, redis, links, disks, clocks, stop };
  } catch (error) {
    await starting.then(
      ({ stop }) => stop(),
      () => undefined,
    );
    await end();
    throw error;
  }
}

function makeFolder({ folder }: SmallDisk, name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  chmodSync(path, 0o711);
  return path;
}

function linksOf(instance: Instance): Links {
  const names = new Map(WITH_LINKS.map((name) => [userOf(name, instance).uid, name]));
  return new Links((uid) => names.get(uid));
}

/** Before it starts anything the supervisor looks whether the ports on 127.0.0.1 are free: they are the links' only then. */
async function openAll(
  links: Links,
  { runDir }: Instance,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  await until(() => existsSync(join(runDir, "state.json")), READY_MS);
  for (const [name, [variable]] of Object.entries(BEHIND_LINKS)) {
    const port = Number(env[variable]);
    await links.open({ name, port, at: { host: THERE, port } });
  }
}

/** Where Redis has what it keeps. */
export const redisFolder = (redis: PrivateRedis) => join(dirname(redis.socket), "appendonlydir");
