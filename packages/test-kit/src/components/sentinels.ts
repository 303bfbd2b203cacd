/** A primary Redis with a replica, and a sentinel that makes the replica the primary when that one is gone. All on loopback. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisProgram } from "@svc/cli/install/packages";
import { Redis } from "ioredis";
import { afterDeath } from "../system/after-death.ts";
import { freePort } from "../system/free-ports.ts";
import { until } from "../system/processes.ts";

const NAME = "mymaster";
const START_MS = 20_000;
/** Until the sentinel takes a primary that does not answer for gone. */
const GONE_MS = 1000;

export interface Watched {
  /** Value for REDIS_URL. */
  url: string;
  /** At the server that is the primary now. */
  primary: () => Promise<Redis>;
  /** Waits until the replica has all that the primary was told so far. */
  replicated: () => Promise<void>;
  /** Ends the primary as if it had crashed; answers when the replica is the primary. */
  failOver: () => Promise<void>;
  /** Has the sentinel hand over to the replica, which then is the primary; the server before stays as its replica. */
  handOver: () => Promise<void>;
  stop: () => Promise<void>;
}

export interface WatchedOptions {
  /** Of the servers. */
  password: string;
  /** Of the sentinel. */
  sentinelPassword: string;
  /** Files: all of them speak TLS alone. */
  tls?: { cert: string; key: string; ca: string };
}

interface Server {
  port: number;
  child: ChildProcess;
}

export async function startWatched({ password, sentinelPassword, tls }: WatchedOptions): Promise<Watched> {
  const directory = mkdtempSync(join(tmpdir(), "svc-test-sentinel-"));
  const isRemoved = afterDeath('rm -rf "$what"', directory);
  const clients = new Map<number, Redis>();
  const at = (port: number, secret = password): Redis => {
    const known = clients.get(port);
    if (known !== undefined) return known;
    const ca = tls && { tls: { ca: readFileSync(tls.ca) } };
    const redis = new Redis({ host: "127.0.0.1", port, password: secret, ...ca });
    redis.on("error", () => undefined);
    clients.set(port, redis);
    return redis;
  };
  const listensAt = (port: number): string[] =>
    tls === undefined
      ? [`port ${port}`]
      : [
          "port 0",
          `tls-port ${port}`,
          `tls-cert-file ${tls.cert}`,
          `tls-key-file ${tls.key}`,
          `tls-ca-cert-file ${tls.ca}`,
          "tls-auth-clients no",
          "tls-replication yes",
        ];
  const run = async (lines: readonly string[], ...further: readonly string[]): Promise<Server> => {
    const port = await freePort();
    const own = mkdtempSync(join(directory, "server-"));
    const file = join(own, "redis.conf");
    writeFileSync(file, [...listensAt(port), "bind 127.0.0.1", `dir ${own}`, ...lines].join("\n"));
    const child = spawn(redisProgram() ?? "redis-server", [file, ...further], {
      argv0: "redis-server",
      stdio: "ignore",
    });
    child.once("exit", afterDeath('kill -KILL "$what"', String(child.pid)));
    return { port, child };
  };
  const kill = async ({ child }: Server): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  const auth = [
    `requirepass ${password}`,
    `masterauth ${password}`,
    'save ""',
    "appendonly yes",
    "repl-diskless-sync-delay 0",
  ];
  const first = await run(auth);
  const second = await run([...auth, `replicaof 127.0.0.1 ${first.port}`]);
  // A sentinel that sees no replica at first looks again after 10 s.
  await until(
    async () => /^master_link_status:up/m.test(await at(second.port).info("replication")),
    START_MS,
  );
  const watcher = await run(
    [
      `requirepass ${sentinelPassword}`,
      `sentinel monitor ${NAME} 127.0.0.1 ${first.port} 1`,
      `sentinel auth-pass ${NAME} ${password}`,
      `sentinel down-after-milliseconds ${NAME} ${GONE_MS}`,
      `sentinel failover-timeout ${NAME} 5000`,
    ],
    "--sentinel",
  );
  const servers = [first, second];
  const sentinel = at(watcher.port, sentinelPassword);
  const ask = async (...words: [string, string]) => (await sentinel.call("SENTINEL", ...words)) as unknown[];
  const primaryPort = async () => Number((await ask("GET-MASTER-ADDR-BY-NAME", NAME))[1]);
  await until(async () => (await ask("REPLICAS", NAME)).length === 1, START_MS);
  const isPrimary = async (port: number) => {
    const [role] = (await at(port).role()) as [string];
    return role === "master" && (await primaryPort()) === port;
  };
  const watched: Watched = {
    url: `${tls ? "rediss" : "redis"}+sentinel://:${password}@127.0.0.1:${watcher.port}/${NAME}`,
    primary: async () => at(await primaryPort()),
    replicated: async () => {
      const primary = await watched.primary();
      await primary.incr("test:replicated");
      expectOne(await primary.wait(1, START_MS));
    },
    failOver: async () => {
      await kill(first);
      await until(() => isPrimary(second.port), START_MS);
    },
    handOver: async () => {
      // It refuses where the replica's state is not fresh enough.
      const begins = () =>
        ask("FAILOVER", NAME).then(
          () => true,
          () => false,
        );
      await until(begins, START_MS);
      await until(() => isPrimary(second.port), START_MS);
    },
    stop: async () => {
      for (const client of clients.values()) client.disconnect();
      for (const server of [watcher, ...servers]) await kill(server);
      rmSync(directory, { recursive: true });
      isRemoved();
    },
  };
  return watched;
}

function expectOne(replicas: number): void {
  if (replicas !== 1) throw new Error("the replica did not follow");
}
