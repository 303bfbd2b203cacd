/** What a copy holds while nothing runs: memory after its garbage is collected, and everything that could leak. */
import { readdirSync, readlinkSync } from "node:fs";
import { total } from "@svc/test-kit/system/descriptors";
import { collectGarbage } from "@svc/test-kit/system/garbage";
import { type Holdings, holdingsOf, settledHoldings, treeOf } from "@svc/test-kit/system/holdings";
import type { PrivateCopy } from "@svc/test-kit/system/private-copy";
import { pssByComponent } from "../accounting.ts";
import { round, sum } from "../statistics.ts";
import { heldByRedis, type RedisHeld } from "./redis.ts";

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
  redis: RedisHeld;
  /** Files other than stored objects. */
  files: number;
}

export async function heldBy(copy: PrivateCopy): Promise<Held> {
  const holdings = await settled(copy);
  const components = copy.state().components.flatMap(({ process }) => (process ? [String(process.pid)] : []));
  await collectGarbage(components);
  return {
    memoryMib: Object.fromEntries([...pssByComponent(copy.state())].map(([name, mib]) => [name, round(mib)])),
    descriptors: Object.fromEntries(
      Object.entries(holdings.descriptors).map(([name, kinds]) => [name, total(kinds)]),
    ),
    processes: sum(Object.values(holdings.processes)),
    cgroups: holdings.cgroups,
    mounts: holdings.mounts,
    namespaces: holdings.namespaces,
    networkNamespaces: networkNamespaces(copy),
    redis: await heldByRedis(copy.instance.redisSocket),
    files: holdings.files.length,
  };
}

/** The state after a while, when the copy does not come to rest: the numbers then show what still goes on. */
async function settled(copy: PrivateCopy): Promise<Holdings> {
  try {
    return await settledHoldings(copy);
  } catch {
    return holdingsOf(copy);
  }
}

/**
 * Network namespaces that a process of the copy is in or has open. jaild keeps one open for the next run of each slot;
 * those are not counted. There are as many of them as slots were ever in use at once.
 */
function networkNamespaces(copy: PrivateCopy): number {
  const found = new Set<string>();
  const master = String(copy.pid("jaild"));
  for (const pid of treeOf(copy.supervisorPid)) {
    for (const path of [`/proc/${pid}/ns/net`, ...(pid === master ? [] : descriptorsOf(pid))]) {
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
