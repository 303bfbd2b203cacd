/**
 * Open descriptors of a process, counted by what they are: connections by the port of their server, pipes, files. Needs root
 * for processes of others.
 */
import { readdirSync, readlinkSync } from "node:fs";
import { readOrEmpty } from "./read-file.ts";

/** Like `{"connection to 3190": 4, "pipe": 2}`. */
export type Descriptors = Record<string, number>;

const LISTENS = "0A";

export function descriptorsOf(pid: number): Descriptors {
  const counts: Descriptors = {};
  const sockets = socketsOf(pid);
  for (const target of targetsOf(pid)) {
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    const kind =
      inode === undefined ? target.replace(/^(\w+):\[\d+\]$/, "$1") : (sockets.get(inode) ?? "socket");
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

export const total = (descriptors: Descriptors = {}): number =>
  Object.values(descriptors).reduce((sum, count) => sum + count, 0);

function targetsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).flatMap((fd) => {
      try {
        return [readlinkSync(`${folder}/${fd}`)];
      } catch {
        // It was closed meanwhile.
        return [];
      }
    });
  } catch {
    return [];
  }
}

/** What the sockets of a process's network namespace are, by inode. */
function socketsOf(pid: number): Map<string, string> {
  const rows = (name: string) =>
    readOrEmpty(`/proc/${pid}/net/${name}`)
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/));
  const tcp = [...rows("tcp"), ...rows("tcp6")].map(([, local, remote, state, , , , , , inode = ""]) => ({
    inode,
    state,
    local: portOf(local),
    remote: portOf(remote),
  }));
  const served = new Set(tcp.filter(({ state }) => state === LISTENS).map(({ local }) => local));
  const found = new Map<string, string>();
  for (const { inode, state, local, remote } of tcp) {
    const accepted = served.has(local) ? `connection at ${local}` : `connection to ${remote}`;
    found.set(inode, state === LISTENS ? `server at ${local}` : accepted);
  }
  // The client's end of a connection has no path.
  for (const [, , , , , , inode = "", path] of rows("unix")) {
    found.set(inode, path === undefined ? "unix socket" : `unix socket ${path}`);
  }
  return found;
}

const portOf = (address = "") => Number.parseInt(address.split(":")[1] ?? "", 16);
