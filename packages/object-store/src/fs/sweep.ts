/**
 * Finds unused objects and the leftovers of aborted writes. A walk holds no directory in memory. When it cannot inspect or remove
 * something, it passes the error to `passOver` and continues with the next. Failures are StoreErrors.
 */
import type { Dirent } from "node:fs";
import { opendir, rm, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isId } from "@svc/contracts";
import type { ObjectAddress, PassOver } from "../store.ts";
import { fsCall, hasCode } from "./errors.ts";
import type { Layout } from "./layout.ts";

async function* entries(directory: string): AsyncGenerator<Dirent> {
  try {
    for await (const entry of await opendir(directory)) yield entry;
  } catch (error) {
    if (!hasCode(error, "ENOENT", "ENOTDIR")) await fsCall("walking the store", () => Promise.reject(error));
  }
}

async function modified(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    return fsCall("walking the store", () => Promise.reject(error));
  }
}

async function* sessionsOf(layout: Layout): AsyncGenerator<string> {
  for await (const { name } of entries(layout.sessions)) if (isId(name)) yield name;
}

async function* objectsOf(layout: Layout, session: string): AsyncGenerator<ObjectAddress> {
  for await (const { name: file } of entries(layout.session(session)))
    if (isId(file)) yield { session, file };
}

export async function* allObjects(layout: Layout, passOver: PassOver): AsyncGenerator<ObjectAddress> {
  for await (const session of sessionsOf(layout)) {
    try {
      yield* objectsOf(layout, session);
    } catch (error) {
      passOver(error);
    }
  }
}

/** The modification time of an object file is the time of its last use. */
export async function* unusedObjects(
  layout: Layout,
  time: Date,
  isWanted: (address: ObjectAddress) => Promise<boolean>,
  passOver: PassOver,
): AsyncGenerator<ObjectAddress> {
  const isUnused = async (address: ObjectAddress) =>
    ((await modified(layout.object(address))) ?? Infinity) < time.getTime();
  for await (const session of sessionsOf(layout)) {
    try {
      for await (const address of objectsOf(layout, session)) {
        if ((await isUnused(address)) && (await isWanted(address)) && (await isUnused(address)))
          yield address;
      }
      await removeIfEmpty(layout.session(session), time);
    } catch (error) {
      passOver(error);
    }
  }
}

async function removeIfEmpty(directory: string, time: Date): Promise<void> {
  const changed = await modified(directory);
  if (changed === undefined || changed >= time.getTime()) return;
  await fsCall("removing an empty session", () =>
    rmdir(directory).catch((error: unknown) => {
      if (!hasCode(error, "ENOTEMPTY", "EEXIST", "ENOENT")) throw error;
    }),
  );
}

/** Passes the error of a leftover that cannot be removed to `passOver` and continues. Returns how many it removed. */
export async function removeLeftovers(layout: Layout, olderThan: Date, passOver: PassOver): Promise<number> {
  let removed = 0;
  const removeIn = async (directory: string, lastWrite: (path: string) => Promise<number>) => {
    for await (const { name } of entries(directory)) {
      const path = join(directory, name);
      try {
        if ((await lastWrite(path)) >= olderThan.getTime()) continue;
        await fsCall("removing a leftover", () => rm(path, { force: true, recursive: true }));
        removed++;
      } catch (error) {
        passOver(error);
      }
    }
  };
  await removeIn(layout.incoming, async (path) => (await modified(path)) ?? Infinity);
  await removeIn(layout.pending, lastWriteIn);
  return removed;
}

/** Time of the last write to a pending session. */
async function lastWriteIn(directory: string): Promise<number> {
  let newest = (await modified(directory)) ?? Infinity;
  for await (const { name } of entries(directory)) {
    newest = Math.max(newest, (await modified(join(directory, name))) ?? 0);
  }
  return newest;
}
