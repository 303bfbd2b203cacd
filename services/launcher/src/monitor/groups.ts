/**
 * Control groups of guests, one for each: what QEMU and its guest may take of memory, processors and processes, whatever they do. Below
 * one folder of the launcher's, in version 1 and 2. A launcher removes what an earlier one has left, which is empty.
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
  /** Once its processes are gone. */
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

  /** Throws where there are none that this process may use. */
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

/** The groups of this process, by which its own are found; pure but for version 2, whose groups may not hold processes. */
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

/** What limits are written to which files. Pure. */
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

/** One that is in use, or gone, stays as it is. */
function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!["EBUSY", "ENOENT", "ENOTEMPTY"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}
