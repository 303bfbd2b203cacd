/**
 * Where jaild may put the jails in cgroup version 2: below a cgroup that holds no processes itself. When its cgroup holds
 * only this process, as in a systemd service, the process moves into a subgroup. A login session is shared with other
 * processes, so there the jails go below the root of the hierarchy.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cgroupMounts } from "./cgroups.ts";

const CONTROLLERS = ["memory", "pids", "cpu"];
/** The subgroup for the supervisor and the components, below the cgroup in which the supervisor was started. */
const ASIDE = "services";

export interface Place {
  /** The cgroup for jaild; undefined: the one that it is started in. */
  base: string | undefined;
  /** The cgroup that this process must move into first. */
  aside?: string;
}

/** What is known of a group of the hierarchy. */
export interface Group {
  path: string;
  /** The root of the kernel's hierarchy, not of a container's. Only this root may hold both processes and subgroups. */
  isRoot: boolean;
  controllers: readonly string[];
  processes: readonly string[];
}

export function placeOf(own: Group, top: Group, pid: string): Place {
  const offers = ({ controllers }: Group) => CONTROLLERS.every((name) => controllers.includes(name));
  if (own.isRoot) return { base: undefined };
  if (offers(own) && own.processes.every((member) => member === pid)) {
    return { base: own.path, aside: join(own.path, ASIDE) };
  }
  return { base: top.isRoot && offers(top) ? top.path : undefined };
}

/** Undefined where jaild finds its place by itself. `mayMove`: false where this process must stay where it is. */
export function findJailsGroup({ mayMove }: { mayMove: boolean }): string | undefined {
  const mount = cgroupMounts().find(
    ({ version, controllers }) => version === 2 && CONTROLLERS.every((name) => controllers.includes(name)),
  );
  const path = /^0::(\/.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  if (mount === undefined || path === undefined) return undefined;
  // A process that may not move counts like a foreign process.
  const pid = mayMove ? String(process.pid) : "";
  const { base, aside } = placeOf(groupAt(join(mount.path, path)), groupAt(mount.path), pid);
  return aside === undefined || moveInto(aside, pid) ? base : undefined;
}

/** Returns false when the hierarchy cannot be written, as in some containers. jaild then reports why it cannot work there. */
function moveInto(group: string, pid: string): boolean {
  try {
    mkdirSync(group, { recursive: true });
    writeFileSync(join(group, "cgroup.procs"), pid);
    return true;
  } catch (error) {
    if (!["EROFS", "EACCES", "EPERM", "EBUSY"].includes((error as NodeJS.ErrnoException).code ?? ""))
      throw error;
    return false;
  }
}

function groupAt(path: string): Group {
  const words = (file: string) => readFileSync(join(path, file), "utf8").split(/\s+/).filter(Boolean);
  return {
    path,
    isRoot: !existsSync(join(path, "cgroup.type")),
    controllers: words("cgroup.controllers"),
    processes: words("cgroup.procs"),
  };
}
