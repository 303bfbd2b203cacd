/**
 * Gives each component's user the folders that the component writes to. A folder with another owner, left by an earlier copy
 * of the system, is taken over with all its content. No symbolic link is followed, and only entries of that owner change
 * hands.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  opendirSync,
  readdirSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { join } from "node:path";
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import { makeFolder } from "../system/folders.ts";
import { shown } from "../system/run.ts";
import { type User, userOf } from "../users.ts";

/** Where the file server keeps objects. An operator may choose another place; the default lies in the data folder. */
export function storageOf(instance: Instance, caller: Readonly<Record<string, string | undefined>>) {
  const own = join(instance.dataDir, "objects");
  const path = caller.STORAGE_DIR || own;
  return { path, isOwn: path === own };
}

const ROOT_USER: User = { uid: 0, gid: 0 };

/** `unprivileged`: whether components run as users of their own. If not, root takes the folders back. */
export function giveFolders(instance: Instance, caller: NodeJS.ProcessEnv, unprivileged: boolean): void {
  const redis = unprivileged ? userOf("redis", instance) : ROOT_USER;
  const socketFolder = join(instance.redisSocket, "..");
  makeFolder(socketFolder);
  chownSync(socketFolder, redis.uid, redis.gid);
  chmodSync(socketFolder, 0o710);
  const redisFolder = join(instance.dataDir, "redis");
  give(redisFolder, redis);
  if (unprivileged) demandOneOwner(redisFolder, redis, "Redis");
  const storage = storageOf(instance, caller);
  const fileServer = userOf("file-server", instance);
  if (storage.isOwn) give(storage.path, unprivileged ? fileServer : ROOT_USER);
  else if (!usesFolder(caller)) return;
  else if (unprivileged) giveChosen(storage.path, fileServer);
  else if (statSync(storage.path, { throwIfNoEntry: false })?.uid === fileServer.uid)
    give(storage.path, ROOT_USER);
  if (unprivileged) demandOneOwner(storage.path, fileServer, "the file server");
}

function usesFolder(caller: NodeJS.ProcessEnv): boolean {
  // The default of ./svc, not of the variable.
  return (caller.STORAGE_DRIVER || "fs").toLowerCase() === "fs";
}

/** The folder itself changes owner last, so an interrupted change is repeated at the next start. */
function give(folder: string, user: User): void {
  makeFolder(folder, 0o700);
  const { uid } = statSync(folder);
  if (uid !== user.uid) {
    const { status, stderr } = spawnSync("/usr/bin/chown", takeOver(folder, uid, user), { encoding: "utf8" });
    if (status !== 0) throw new Problem(`${folder} cannot be given to its component`, stderr?.trim());
  }
  chmodSync(folder, 0o700);
}

function takeOver(folder: string, from: number, { uid, gid }: User): string[] {
  return ["-hR", `--from=${from}`, `${uid}:${gid}`, "--", realpathSync(folder)];
}

function demandOneOwner(folder: string, { uid, gid }: User, whose: string): void {
  const path = realpathSync(folder);
  const foreign = foreignEntry(path, uid);
  if (foreign === undefined) return;
  throw new Problem(
    `${foreign} does not belong to the user of ${whose}, ${uid}, as its folder does`,
    `When ${folder} holds what this service stored alone, as after a restore, run: ${shown(["chown", "-hR", `${uid}:${gid}`, "--", path])}`,
  );
}

/** How many entries are checked in each subfolder of the folder. */
const LOOKED_AT = 500;

/**
 * Returns a file or folder with another owner. Symbolic links are never followed. All entries of the folder are checked, and
 * in each subfolder up to 500 entries, however many objects a copy has. That finds the usual cause: a copy or a restore
 * without owners gives all that it writes another owner. ext4 lists a folder by hashes of names. So when one session in fifty
 * was written this way, one start in 150 misses it. A missed file only harms itself: a request for it gets 503.
 */
export function foreignEntry(folder: string, uid: number): string | undefined {
  const { dev } = lstatSync(folder);
  const isForeign = (found: Stats) => (found.isFile() || found.isDirectory()) && found.uid !== uid;
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || found.dev !== dev) continue;
    if (isForeign(found)) return path;
    if (!found.isDirectory()) continue;
    const below = firstBelow(path, dev, isForeign);
    if (below !== undefined) return below;
  }
  return undefined;
}

function firstBelow(top: string, dev: number, isMeant: (found: Stats) => boolean): string | undefined {
  const open = [opendirSync(top)];
  try {
    for (let left = LOOKED_AT; left > 0 && open.length > 0; ) {
      const entry = open.at(-1)?.readSync();
      if (entry == null) {
        open.pop()?.closeSync();
        continue;
      }
      left--;
      const path = join(entry.parentPath, entry.name);
      const found = lstatSync(path, { throwIfNoEntry: false });
      if (found === undefined || found.dev !== dev) continue;
      if (isMeant(found)) return path;
      if (found.isDirectory()) open.push(opendirSync(path));
    }
    return undefined;
  } finally {
    for (const folder of open) folder.closeSync();
  }
}

/** A folder that the operator chose may hold files of others. If it is not empty, the operator is told what to do. */
function giveChosen(folder: string, user: User): void {
  if (!existsSync(folder)) makeFolder(folder, 0o700);
  const { uid } = statSync(folder);
  if (uid === user.uid) return;
  if (readdirSync(folder).length > 0) {
    throw new Problem(
      `STORAGE_DIR ${folder} does not belong to the user of the file server, ${user.uid}`,
      `When it holds objects of this service alone, run: ${shown(["chown", ...takeOver(folder, uid, user)])}`,
    );
  }
  give(folder, user);
}
