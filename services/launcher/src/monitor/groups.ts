/**
 * One control group for each guest, in version 1 or 2. It limits memory, processors and processes of QEMU and its guest, whatever they do. All
 * groups are below one folder of this launcher. A launcher that starts removes the empty groups that an earlier one left.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CgroupMount, cgroupMounts } from "@svc/cli/system/cgroups";
import { findJailsGroup } from "@svc/cli/system/jails-group";

export interface GroupLimits {
  memoryBytes: number;
  cpus: number;
  processes: number;
}

export interface Group {
  add: (pid: number) => void;
  /** Call it once the group's processes are gone. */
  remove: () => void;
}

interface Place {
  version: 1 | 2;
  path: string;
  controllers: readonly string[];
}

const CONTROLLERS = ["memory", "pids", "cpu"] as const;
const NAME = /^svc-launcher-(\d+)$/;
const PERIOD_US = 100_000;

export class Groups {
  readonly #places: readonly Place[];

  private constructor(places: readonly Place[]) {
    this.#places = places;
  }

  /** Throws when there are no control groups that this process may use. */
  static open(): Groups {
    const places = placesOf(cgroupMounts(), readFileSync("/proc/self/cgroup", "utf8"));
    const missing = CONTROLLERS.filter(
      (name) => !places.some(({ controllers }) => controllers.includes(name)),
    );
    if (missing.length > 0) throw new Error(`no control groups for ${missing.join(", ")}`);
    const own = places.map(({ path, ...place }) => {
      sweep(path);
      const folder = join(path, `svc-launcher-${process.pid}`);
      mkdirSync(folder, { recursive: true });
      if (place.version === 2)
        for (const group of [path, folder])
          writeFileSync(
            join(group, "cgroup.subtree_control"),
            CONTROLLERS.map((name) => `+${name}`).join(" "),
          );
      return { ...place, path: folder };
    });
    return new Groups(own);
  }

  make(number: number, limits: GroupLimits): Group {
    const folders = this.#places.map(({ version, path, controllers }) => {
      const folder = join(path, String(number));
      mkdirSync(folder, { recursive: true });
      for (const [file, value] of filesOf(version, controllers, limits))
        if (existsSync(join(folder, file))) writeFileSync(join(folder, file), value);
      return folder;
    });
    return {
      add: (pid) => {
        for (const folder of folders) writeFileSync(join(folder, "cgroup.procs"), String(pid));
      },
      remove: () => {
        for (const folder of folders) removeEmpty(folder);
      },
    };
  }

  close(): void {
    for (const { path } of this.#places) removeEmpty(path);
  }
}

/**
 * Finds where to make the launcher's groups: in version 1 below the groups of this process. In version 2 a group with subgroups may hold no
 * processes, so this process may move into another group (findJailsGroup). Otherwise pure.
 */
function placesOf(mounts: readonly CgroupMount[], own: string): Place[] {
  const unified = mounts.find(
    ({ version, controllers }) => version === 2 && CONTROLLERS.every((name) => controllers.includes(name)),
  );
  if (unified !== undefined) return [{ ...unified, path: findJailsGroup({ mayMove: true }) ?? unified.path }];
  return mounts
    .filter(
      ({ version, controllers }) => version === 1 && CONTROLLERS.some((name) => controllers.includes(name)),
    )
    .map((mount) => {
      const name = CONTROLLERS.find((controller) => mount.controllers.includes(controller));
      const path = new RegExp(`^\\d+:[^:]*\\b${name}\\b[^:]*:(/.*)$`, "m").exec(own)?.[1] ?? "/";
      const inside = join(mount.path, path);
      return { ...mount, path: existsSync(inside) ? inside : mount.path };
    });
}

/** Which limits are written to which files. Pure. */
export function filesOf(
  version: 1 | 2,
  controllers: readonly string[],
  { memoryBytes, cpus, processes }: GroupLimits,
): [string, string][] {
  const quota = cpus * PERIOD_US;
  const all: Record<(typeof CONTROLLERS)[number], [string, string][]> =
    version === 2
      ? {
          memory: [
            ["memory.max", `${memoryBytes}`],
            ["memory.swap.max", "0"],
          ],
          pids: [["pids.max", `${processes}`]],
          cpu: [["cpu.max", `${quota} ${PERIOD_US}`]],
        }
      : {
          memory: [["memory.limit_in_bytes", `${memoryBytes}`]],
          pids: [["pids.max", `${processes}`]],
          cpu: [
            ["cpu.cfs_period_us", `${PERIOD_US}`],
            ["cpu.cfs_quota_us", `${quota}`],
          ],
        };
  return CONTROLLERS.filter((name) => controllers.includes(name)).flatMap((name) => all[name]);
}

/** Removes the groups of launchers that are gone. */
function sweep(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = NAME.exec(name)?.[1];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    const left = join(folder, name);
    for (const entry of readdirSync(left, { withFileTypes: true }))
      if (entry.isDirectory()) removeEmpty(join(left, entry.name));
    removeEmpty(left);
  }
}

/** Removes a group; leaves one that is in use, and ignores one that is gone. */
function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!["EBUSY", "ENOENT", "ENOTEMPTY"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}
