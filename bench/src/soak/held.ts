/** What a copy holds while nothing runs: memory after its garbage is collected, and everything that could leak. */
import { readdirSync, readlinkSync } from "node:fs";
import { createConnection } from "node:net";
import type { PrivateCopy } from "@svc/cli/private-copy";
import { type Holdings, holdingsOf, settledHoldings, treeOf } from "../../../tests/e2e/support/holdings.ts";
import { collectGarbage } from "../../../tests/escape/support/garbage.ts";
import { pssByComponent } from "../accounting.ts";
import { round } from "../statistics.ts";

export interface Held {
  /** Proportional set size by component with all its descendants. */
  memoryMib: Record<string, number>;
  /** Open descriptors by component. */
  descriptors: Record<string, number>;
  processes: number;
  cgroups: number;
  mounts: number;
  /** Of all kinds. */
  namespaces: number;
  networkNamespaces: number;
  redisMib: number;
  redisKeys: number;
  /** Files that are no stored objects. */
  files: number;
}

export async function heldBy(copy: PrivateCopy): Promise<Held> {
  const holdings = await settled(copy);
  const components = copy.state().components.flatMap(({ process }) => (process ? [String(process.pid)] : []));
  await collectGarbage(components);
  const redis = copy.instance.redisSocket;
  return {
    memoryMib: Object.fromEntries([...pssByComponent(copy.state())].map(([name, mib]) => [name, round(mib)])),
    descriptors: holdings.descriptors,
    processes: Object.values(holdings.processes).reduce((sum, count) => sum + count, 0),
    cgroups: holdings.cgroups,
    mounts: holdings.mounts,
    namespaces: holdings.namespaces,
    networkNamespaces: networkNamespaces(copy),
    redisMib: round(Number(/^used_memory:(\d+)/m.exec(await askRedis(redis, "INFO memory"))?.[1]) / 2 ** 20),
    redisKeys: Number(/^:(\d+)/.exec(await askRedis(redis, "DBSIZE"))?.[1]),
    files: holdings.files.length,
  };
}

/** As it is after a while when it does not come to rest: what goes on is seen in the numbers. */
async function settled(copy: PrivateCopy): Promise<Holdings> {
  try {
    return await settledHoldings(copy);
  } catch {
    return holdingsOf(copy);
  }
}

/** Those that a process of the copy is in or has open. */
function networkNamespaces(copy: PrivateCopy): number {
  const found = new Set<string>();
  for (const pid of treeOf(copy.supervisorPid)) {
    for (const path of [`/proc/${pid}/ns/net`, ...descriptorsOf(pid)]) {
      const target = linkOf(path);
      if (target.startsWith("net:")) found.add(target);
    }
  }
  return found.size;
}

function descriptorsOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => `/proc/${pid}/fd/${name}`);
  } catch {
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/** One short answer to one command. */
function askRedis(path: string, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path });
    let answer = "";
    socket.setEncoding("latin1").on("data", (text: string) => {
      answer += text;
    });
    socket.once("error", reject).once("end", () => resolve(answer));
    socket.write(`${command}\r\nQUIT\r\n`);
  });
}
