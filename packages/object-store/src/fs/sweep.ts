/**
 * Walks the store without holding directories in memory: what was not used for long, and what broken-off writes left. A session
 * that cannot be looked at is handed to `passOver`, and the walk goes on behind it. Failures are StoreErrors.
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

export async function removeLeftovers(layout: Layout, olderThan: Date): Promise<number> {
  const limit = olderThan.getTime();
  let removed = 0;
  for await (const entry of entries(layout.incoming)) {
    const path = join(layout.incoming, entry.name);
    if (((await modified(path)) ?? limit) >= limit) continue;
    await rm(path, { force: true, recursive: true });
    removed++;
  }
  for await (const session of entries(layout.pending)) {
    const path = join(layout.pending, session.name);
    let newest = (await modified(path)) ?? limit;
    for await (const file of entries(path)) {
      newest = Math.max(newest, (await modified(join(path, file.name))) ?? 0);
    }
    if (newest >= limit) continue;
    await rm(path, { force: true, recursive: true });
    removed++;
  }
  return removed;
}
