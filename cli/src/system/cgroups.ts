/**
 * Cgroups with the name of a copy, in every mounted hierarchy of version 1 and 2. Only empty cgroups can be removed, so
 * running processes are not affected.
 */
import { type Dirent, existsSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";

export interface CgroupMount {
  version: 1 | 2;
  path: string;
  controllers: readonly string[];
}

export function cgroupMounts(): CgroupMount[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([, , type]) => type === "cgroup" || type === "cgroup2")
    .map(([, path = "", type, options = ""]) => ({
      version: type === "cgroup" ? 1 : 2,
      path,
      controllers: type === "cgroup" ? options.split(",") : readWords(join(path, "cgroup.controllers")),
    }));
}

const NAME = /^svc-[0-9a-f]{8}$/;
const SEARCH_DEPTH = 4;

/** The cgroup of a launcher's guests. The number is the pid of the launcher (services/launcher). */
const LAUNCHERS_NAME = /^svc-launcher-(\d+)$/;

/** Folders of all cgroups with this name. They may lie below the group in which the system was started. */
export function findCgroups(name: string): string[] {
  if (!NAME.test(name)) throw new RangeError(`no name of ours: ${name}`);
  return findAll((entry) => entry === name);
}

function findAll(isMeant: (name: string) => boolean): string[] {
  return cgroupMounts().flatMap(({ path }) => search(path, isMeant, SEARCH_DEPTH));
}

function search(folder: string, isMeant: (name: string) => boolean, depth: number): string[] {
  const found: string[] = [];
  for (const entry of subfolders(folder)) {
    const path = join(folder, entry);
    if (isMeant(entry)) found.push(path);
    else if (depth > 1) found.push(...search(path, isMeant, depth - 1));
  }
  return found;
}

/** One folder for each guest of a running launcher and each hierarchy. The folders of one guest have the same last part. */
export function findGuestsCgroups(launcher: number): string[] {
  const own = findAll((entry) => LAUNCHERS_NAME.exec(entry)?.[1] === String(launcher));
  return own.flatMap((folder) => subfolders(folder).map((guest) => join(folder, guest)));
}

/** Removes the cgroups of launchers that were killed. */
export function removeLaunchersCgroups(): void {
  const isLeft = (name: string) => {
    const pid = LAUNCHERS_NAME.exec(name)?.[1];
    return pid !== undefined && !existsSync(`/proc/${pid}`);
  };
  for (const folder of findAll(isLeft)) removeTree(folder);
}

/** Removes the empty ones, children first. */
export function removeCgroups(name: string): void {
  for (const folder of findCgroups(name)) removeTree(folder);
}

function removeTree(folder: string): void {
  for (const entry of subfolders(folder)) removeTree(join(folder, entry));
  try {
    rmdirSync(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (
      code !== "EBUSY" &&
      code !== "ENOENT" &&
      code !== "ENOTEMPTY" &&
      code !== "EACCES" &&
      code !== "EPERM"
    )
      throw error;
  }
}

function subfolders(folder: string): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

function readWords(path: string): string[] {
  try {
    return readFileSync(path, "utf8").split(/\s+/).filter(Boolean);
  } catch {
    return [];
  }
}
