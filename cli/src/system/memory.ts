/** Memory that this process and its children may use: the machine's memory, or less when a cgroup limits it. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { type CgroupMount, cgroupMounts } from "./cgroups.ts";

export function totalMemory(): number {
  const machine = Number(/^MemTotal:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) * 1024;
  return Math.min(machine, ...groupLimits(cgroupMounts(), readFileSync("/proc/self/cgroup", "utf8")));
}

/** The sizes of the machine from which settings are derived. */
export function thisMachine(): { cores: number; memoryBytes: number } {
  return { cores: availableParallelism(), memoryBytes: totalMemory() };
}

/** The memory limits of the process's cgroup and of its parents. `own`: the text of /proc/self/cgroup. */
export function groupLimits(mounts: readonly CgroupMount[], own: string): number[] {
  const mount = mounts.find(({ controllers }) => controllers.includes("memory"));
  if (mount === undefined) return [];
  const line = new RegExp(mount.version === 2 ? "^0::(/.*)$" : "^\\d+:[^:]*\\bmemory\\b[^:]*:(/.*)$", "m");
  const file = mount.version === 2 ? "memory.max" : "memory.limit_in_bytes";
  return groupsUpTo(mount.path, line.exec(own)?.[1] ?? "/").flatMap((group) => limitIn(join(group, file)));
}

function groupsUpTo(mount: string, path: string): string[] {
  return path === "/" ? [mount] : [join(mount, path), ...groupsUpTo(mount, dirname(path))];
}

/** Empty when the file says `max`, or does not exist, as in the root cgroup. */
function limitIn(path: string): number[] {
  try {
    const limit = Number(readFileSync(path, "utf8"));
    return Number.isSafeInteger(limit) ? [limit] : [];
  } catch {
    return [];
  }
}
