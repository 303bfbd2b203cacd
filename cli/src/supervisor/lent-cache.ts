/** Lets the runner's user read the compiled code of the components, and never write it. */
import { chmodSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { basename, join } from "node:path";
import { compileCacheOf } from "../environment.ts";
import type { Instance } from "../instance.ts";

/** Node gives each user a folder in the cache, named by its number at the end: a link of the runner's number leads to ours. */
export function lendCompileCache(instance: Instance, runnerUid: number | undefined): void {
  const own = getCompileCacheDir();
  if (own === undefined) return;
  chmodSync(own, 0o755);
  const folder = compileCacheOf("runner", instance);
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
  const link = join(folder, basename(own).replace(/-\d+$/, `-${runnerUid ?? process.getuid?.()}`));
  rmSync(link, { force: true });
  symlinkSync(own, link);
}
