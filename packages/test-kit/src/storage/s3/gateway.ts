/** A radosgw process for one test in front of the cluster, which can be killed and started again on the same port. */
import type { ChildProcess } from "node:child_process";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../system/free-ports.ts";
import { end, startDaemon } from "./cluster.ts";

const START_MS = 60_000;

export interface Gateway {
  endpoint: string;
  /** SIGKILL, and waits for the end. */
  kill: () => Promise<void>;
  start: () => Promise<void>;
  /** Stands still, with its connections open, until `resume`. */
  pause: () => void;
  resume: () => void;
}

export interface GatewayOptions {
  /** File with key and certificate: the gateway then speaks TLS only. */
  certificate?: string;
}

export async function startGateway(
  directory: string,
  { certificate }: GatewayOptions = {},
): Promise<Gateway> {
  const port = await freePort();
  const listen =
    certificate === undefined
      ? `endpoint=127.0.0.1:${port}`
      : `ssl_endpoint=127.0.0.1:${port} ssl_certificate=${certificate}`;
  const name = `radosgw-${port}`;
  let child: ChildProcess;
  const start = async () => {
    child = startDaemon(directory, name, [
      "radosgw",
      ...["-n", "client.rgw", "-c", "ceph.conf", "-f"],
      `--rgw_frontends=beast ${listen} tcp_nodelay=1`,
    ]);
    for (const deadline = Date.now() + START_MS; !(await answers(port)); await delay(20)) {
      if (child.exitCode !== null || Date.now() > deadline) {
        throw new Error(`radosgw did not start: ${await readFile(join(directory, `${name}.log`), "utf8")}`);
      }
    }
  };
  await start();
  return {
    endpoint: `${certificate === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    kill: () => end(child),
    start,
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
