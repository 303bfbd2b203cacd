/** Lets the users of the components read the compiled code of the components, and never write it. */
import { chmodSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { basename, join } from "node:path";
import { lentCompileCache } from "../environment.ts";
import { type Instance, SERVICES } from "../instance.ts";
import { userOf } from "../users.ts";

/** Node gives each user a folder in the cache, named by its number at the end: a link of each number leads to ours. */
export function lendCompileCache(instance: Instance): void {
  const own = getCompileCacheDir();
  if (own === undefined) return;
  chmodSync(own, 0o755);
  const folder = lentCompileCache(instance);
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
  const users = SERVICES.map((service) => userOf(service, instance).uid);
  for (const uid of [...users, process.getuid?.()]) {
    const link = join(folder, basename(own).replace(/-\d+$/, `-${uid}`));
    rmSync(link, { force: true });
    symlinkSync(own, link);
  }
}
