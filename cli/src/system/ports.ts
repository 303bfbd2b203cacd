/** Finds out who holds a TCP port, for helpful messages. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { printable } from "../terminal.ts";

/** True when a server can listen on the address. */
export async function portIsFree(host: string, port: number): Promise<boolean> {
  return (await listenProblem(host, port)) === undefined;
}

/** The error code when a server cannot listen on the address, such as EADDRINUSE. */
export function listenProblem(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** What to do when that code is another one than EADDRINUSE: the address of the API is the only one that can be chosen. */
export const NO_ADDRESS = "Is it an address of this machine? SERVICE_HOST names it.";

const LISTENING = "0A";

/**
 * Describes the process that listens on a port: `pid 812 (/usr/sbin/nginx -g daemon off;)` or `pid 812 of the copy in
 * /srv/data`. Undefined when it cannot be seen.
 */
export function listenerOf(port: number): string | undefined {
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  const inodes = new Set<string>();
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    for (const line of read(table).split("\n").slice(1)) {
      const fields = line.trim().split(/\s+/);
      if (fields[1]?.endsWith(`:${hexPort}`) && fields[3] === LISTENING) inodes.add(`socket:[${fields[9]}]`);
    }
  }
  if (inodes.size === 0) return undefined;
  let other: string | undefined;
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid) || !holds(pid, inodes)) continue;
    const copy = copyOf(pid);
    if (copy !== undefined) return `pid ${pid} of the copy in ${copy}`;
    other ??= `pid ${pid} (${commandLine(pid)})`;
    // A supervisor in a terminal holds the API's port, too. Only the API process shows which copy it is, so the search goes on.
    if (!other.includes("/src/main.ts")) break;
  }
  return other;
}

/** The data folder of the copy of ./svc whose logs the process writes to. */
function copyOf(pid: string): string | undefined {
  const log = link(`/proc/${pid}/fd/1`);
  const folder = dirname(dirname(log));
  const isOurs = log === join(folder, "logs", log.slice(log.lastIndexOf("/") + 1)) && log.endsWith(".log");
  return isOurs && existsSync(join(folder, "run/state.json")) ? printable(folder) : undefined;
}

const MOST_SHOWN = 120;

/** The command line of a process, because the name alone is `MainThread` for every Node process. A process can write any text there. */
function commandLine(pid: string): string {
  const words = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
  const shown = printable((words || read(`/proc/${pid}/comm`).trim()).replaceAll("\n", " "));
  return shown.length > MOST_SHOWN ? `${shown.slice(0, MOST_SHOWN)}…` : shown;
}

function holds(pid: string, inodes: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => inodes.has(link(`/proc/${pid}/fd/${fd}`)));
  } catch {
    return false;
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
