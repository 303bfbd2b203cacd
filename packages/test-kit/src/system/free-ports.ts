/**
 * TCP ports on loopback for what a test starts later. They are below the range from which the kernel takes ports for
 * connections, so that no connection gets one in the meantime, and claimed across processes until the caller ends.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { PORTS, SERVICES } from "@svc/cli/instance";
import { portIsFree } from "@svc/cli/system/ports";

const FIRST = 20_000;

/** A port that nothing listens on and that no other caller gets while this process lives. */
export async function freePort(): Promise<number> {
  const first = Number.parseInt(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8"), 10);
  for (let port = FIRST; port < first; port++) {
    if ((await claim(port)) && (await portIsFree("127.0.0.1", port))) return port;
  }
  throw new Error(`no port from ${FIRST} to ${first - 1} is free`);
}

/** One free port for each service, by the variable that names it. */
export async function freePorts(): Promise<Record<string, string>> {
  const ports: Record<string, string> = {};
  for (const service of SERVICES) ports[PORTS[service][0]] = String(await freePort());
  return ports;
}

/** An abstract socket (unix(7)) has one owner, and the kernel removes it with its process. */
function claim(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const owner = createServer();
    owner.once("error", () => resolve(false));
    owner.listen(`\0svc-test-port-${port}`, () => resolve(true)).unref();
  });
}
