/** Memory that this process and its children may use: the machine's, or less where a control group limits it. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { type CgroupMount, cgroupMounts } from "./cgroups.ts";

export function totalMemory(): number {
  const machine = Number(/^MemTotal:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) * 1024;
  return Math.min(machine, ...groupLimits(cgroupMounts(), readFileSync("/proc/self/cgroup", "utf8")));
}

/** What sizes follow. */
export function thisMachine(): { cores: number; memoryBytes: number } {
  return { cores: availableParallelism(), memoryBytes: totalMemory() };
}

/** The limits of the own group and of those above it. `own`: a file like /proc/self/cgroup. */
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

/** None where the file says `max`, or is not there as in the root group. */
function limitIn(path: string): number[] {
  try {
    const limit = Number(readFileSync(path, "utf8"));
    return Number.isSafeInteger(limit) ? [limit] : [];
  } catch {
    return [];
  }
}
