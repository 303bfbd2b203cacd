/** A redis-server for one test: on a unix socket in a temporary directory. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { redisProgram } from "@svc/cli/install/packages";
import { afterDeath } from "../system/after-death.ts";
import { pidOf } from "./component.ts";

export interface PrivateRedis {
  /** Value for REDIS_URL. */
  url: string;
  socket: string;
  pid: number;
  /** Ends the server as if it had crashed. `start` brings it back: empty, unless it is `kept`. */
  kill: () => Promise<void>;
  start: () => Promise<void>;
  /** Ends the server and removes its directory. */
  stop: () => Promise<void>;
}

const START_MS = 10_000;

export interface RedisOptions {
  /** What it holds is written to disk as in the local copy, and survives a crash of the server. */
  kept?: boolean;
  /** Where it listens besides its socket, without a password. */
  at?: { host: string; port: number };
  /** Options of redis-server. */
  further?: readonly string[];
}

export async function startRedis(options: RedisOptions = {}): Promise<PrivateRedis> {
  const directory = await mkdtemp(join(tmpdir(), "svc-test-redis-"));
  const socket = join(directory, "redis.sock");
  const isRemoved = afterDeath('rm -rf "$what"', directory);
  let child = await launch(directory, socket, options);
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return {
    url: `unix://${socket}`,
    socket,
    get pid() {
      return pidOf(child);
    },
    kill,
    start: async () => {
      child = await launch(directory, socket, options);
    },
    stop: async () => {
      await kill();
      await rm(directory, { recursive: true, force: true });
      isRemoved();
    },
  };
}

async function launch(
  directory: string,
  socket: string,
  { kept = false, at, further = [] }: RedisOptions,
): Promise<ChildProcess> {
  await rm(socket, { force: true });
  const address = at && ["--bind", at.host, "--protected-mode", "no"];
  const options = [
    "--port",
    String(at?.port ?? 0),
    ...(address ?? []),
    "--unixsocket",
    socket,
    "--dir",
    directory,
    "--save",
    "",
    "--appendonly",
    kept ? "yes" : "no",
    "--appendfsync",
    "everysec",
    ...further,
  ];
  const child = spawn(redisProgram() ?? "redis-server", options, { argv0: "redis-server", stdio: "ignore" });
  child.once("exit", afterDeath('kill -KILL "$what"', String(child.pid)));
  const failed = once(child, "exit").then(() => {
    throw new Error("redis-server ended at start");
  });
  failed.catch(() => undefined);
  await Promise.race([accepting(socket), failed]);
  return child;
}

async function accepting(socket: string): Promise<void> {
  for (const deadline = Date.now() + START_MS; ; await delay(10)) {
    const connection = connect(socket);
    const up = await new Promise<boolean>((resolve) => {
      connection.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    connection.destroy();
    if (up) return;
    if (Date.now() > deadline) throw new Error("redis-server did not start in time");
  }
}
