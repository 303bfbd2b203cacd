/**
 * Gives the folders that a component writes to its user. A folder of another owner, as an earlier copy of the system left
 * it, is taken over with all that is in it: no link is followed, and only what belongs to that owner changes hands.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import { makeFolder } from "../system/folders.ts";
import { shown } from "../system/run.ts";
import { type User, userOf } from "../users.ts";

/** Where the file server keeps objects. An operator may choose the place; our own lies in the data folder. */
export function storageOf(instance: Instance, caller: Readonly<Record<string, string | undefined>>) {
  const own = join(instance.dataDir, "objects");
  const path = caller.STORAGE_DIR || own;
  return { path, isOwn: path === own };
}

const ROOT_USER: User = { uid: 0, gid: 0 };

/** `unprivileged`: whether components run as users of their own. Otherwise root takes their folders back. */
export function giveFolders(instance: Instance, caller: NodeJS.ProcessEnv, unprivileged: boolean): void {
  const redis = unprivileged ? userOf("redis", instance) : ROOT_USER;
  const socketFolder = join(instance.redisSocket, "..");
  makeFolder(socketFolder);
  chownSync(socketFolder, redis.uid, redis.gid);
  chmodSync(socketFolder, 0o710);
  give(join(instance.dataDir, "redis"), redis);
  const storage = storageOf(instance, caller);
  const fileServer = userOf("file-server", instance);
  if (storage.isOwn) give(storage.path, unprivileged ? fileServer : ROOT_USER);
  else if (!usesFolder(caller)) return;
  else if (unprivileged) giveChosen(storage.path, fileServer);
  else if (statSync(storage.path, { throwIfNoEntry: false })?.uid === fileServer.uid)
    give(storage.path, ROOT_USER);
}

function usesFolder(caller: NodeJS.ProcessEnv): boolean {
  return (caller.STORAGE_DRIVER || "fs") === "fs";
}

/** The folder itself changes hands last: an interrupted change is begun again. */
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

/** What lies in a folder that somebody chose may not be ours: then he is told what to do. */
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
