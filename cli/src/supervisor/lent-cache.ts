/** Lets the users of the components read Node's compile cache, but not write it. */
import { chmodSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { basename, join } from "node:path";
import { lentCompileCache } from "../environment.ts";
import { type Instance, SERVICES } from "../instance.ts";
import { userOf } from "../users.ts";

/** Node uses one cache folder for each user, whose name ends with the user id. A symbolic link for each id points to our folder. */
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
