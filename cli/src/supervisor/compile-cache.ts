/**
 * The compiled code of the components, complete before they start. Without it each of them strips and compiles the same
 * TypeScript at once, and keeps the compiler that does so (10 MiB) in memory. Made by letting each component load its code:
 * one that has no configuration refuses to start when everything is loaded. A cache that cannot be made costs only time.
 */
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { basename, dirname, join } from "node:path";
import { NODE } from "../components.ts";
import { compileCacheOf } from "../environment.ts";
import { type Instance, ROOT, SERVICES, type Service } from "../instance.ts";
import { run } from "../system/run.ts";

const CODE = ["services", "packages"];

/** Node gives each user a folder in the cache, named by its own number at the end. */
export async function prepareCompileCache(instance: Instance, runnerUid: number | undefined): Promise<void> {
  const own = getCompileCacheDir();
  if (own === undefined) return;
  if (modified(join(own, "complete")) < newestCode()) await fill(own);
  lend(own, compileCacheOf("runner", instance), runnerUid ?? Number(process.getuid?.()));
}

/** One after the other at first, since all share most of their code. */
async function fill(own: string): Promise<void> {
  const [first, ...others] = SERVICES;
  const load = (service: Service) =>
    run([NODE, join(ROOT, "services", service, "src/main.ts")], {
      env: { PATH: "/usr/bin:/bin", NODE_COMPILE_CACHE: dirname(own) },
    });
  await load(first);
  await Promise.all(others.map(load));
  for (const name of readdirSync(own)) makeReadable(join(own, name));
  writeFileSync(join(own, "complete"), "");
}

/** The runner's user reads the cache and cannot write it: a link in a folder of its own leads there under its number. */
function lend(own: string, folder: string, uid: number): void {
  chmodSync(own, 0o755);
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
  const link = join(folder, basename(own).replace(/-\d+$/, `-${uid}`));
  rmSync(link, { force: true });
  symlinkSync(own, link);
}

/** A process that ends may just be replacing it by the same. */
function makeReadable(file: string): void {
  try {
    chmodSync(file, 0o644);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** When the code of the components was last changed, in milliseconds. */
function newestCode(): number {
  const files = CODE.flatMap((folder) =>
    readdirSync(join(ROOT, folder)).flatMap((name) =>
      readdirSync(join(ROOT, folder, name, "src"), { recursive: true, encoding: "utf8" }).map((file) =>
        join(ROOT, folder, name, "src", file),
      ),
    ),
  );
  return Math.max(...[...files, join(ROOT, "package-lock.json")].map(modified));
}

function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
