/** Walks the store without holding directories in memory: what was not used for long, and what broken-off writes left. */
import type { Dirent } from "node:fs";
import { opendir, rm, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isId } from "@svc/contracts";
import type { ObjectAddress } from "../store.ts";
import { hasCode } from "./errors.ts";
import type { Layout } from "./layout.ts";

async function* entries(directory: string): AsyncGenerator<Dirent> {
  try {
    for await (const entry of await opendir(directory)) yield entry;
  } catch (error) {
    if (!hasCode(error, "ENOENT", "ENOTDIR")) throw error;
  }
}

async function modified(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

export async function* allObjects(layout: Layout): AsyncGenerator<ObjectAddress> {
  for await (const session of entries(layout.sessions)) {
    if (!isId(session.name)) continue;
    for await (const file of entries(join(layout.sessions, session.name))) {
      if (isId(file.name)) yield { session: session.name, file: file.name };
    }
  }
}

/** The modification time of an object file is the time of its last use. */
export async function* unusedObjects(
  layout: Layout,
  time: Date,
  isWanted: (address: ObjectAddress) => Promise<boolean>,
): AsyncGenerator<ObjectAddress> {
  for await (const session of entries(layout.sessions)) {
    if (!isId(session.name)) continue;
    for await (const file of entries(join(layout.sessions, session.name))) {
      if (!isId(file.name)) continue;
      const address = { session: session.name, file: file.name };
      const isUnused = async () => ((await modified(layout.object(address))) ?? Infinity) < time.getTime();
      if ((await isUnused()) && (await isWanted(address)) && (await isUnused())) yield address;
    }
    await removeIfEmpty(join(layout.sessions, session.name), time);
  }
}

async function removeIfEmpty(directory: string, time: Date): Promise<void> {
  const changed = await modified(directory);
  if (changed === undefined || changed >= time.getTime()) return;
  await rmdir(directory).catch((error: unknown) => {
    if (!hasCode(error, "ENOTEMPTY", "EEXIST", "ENOENT")) throw error;
  });
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
