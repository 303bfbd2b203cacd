/**
 * Where control groups of version 2 let jaild put the jails: below a group that holds no processes itself. In a group that
 * holds only this process, as a service of systemd has it, this process steps aside into a group of its own; in a login
 * session, which others share, the jails go below the root of the hierarchy.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cgroupMounts } from "./cgroups.ts";

const CONTROLLERS = ["memory", "pids", "cpu"];
/** Of the supervisor and the components, below the group in which the supervisor was started. */
const ASIDE = "services";

export interface Place {
  /** The group for jaild; undefined: the one that it is started in. */
  base: string | undefined;
  /** This process must move into this group before. */
  aside?: string;
}

/** What is known of a group of the hierarchy. */
export interface Group {
  path: string;
  /** The root of the kernel's hierarchy, and no container's. It alone may hold processes beside groups. */
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
  // A process that may not move counts as another one.
  const pid = mayMove ? String(process.pid) : "";
  const { base, aside } = placeOf(groupAt(join(mount.path, path)), groupAt(mount.path), pid);
  return aside === undefined || moveInto(aside, pid) ? base : undefined;
}

/** False where the hierarchy cannot be written, as in some containers: then jaild tells why it cannot work there. */
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
