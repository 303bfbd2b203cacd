/**
 * Brings a machine to the point where the system can start: Debian packages, the jail, the root image. Each step looks
 * first and does nothing when nothing is missing. Says what it installs before it does.
 */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { NODE } from "../components.ts";
import { type Instance, ROOT } from "../instance.ts";
import { mustRun } from "../system/run.ts";
import type { Progress } from "../terminal.ts";
import { installPackages, missingPackages, type Purpose } from "./packages.ts";

/** Number of steps that `install` shows. */
export const INSTALL_STEPS = 3;

const ESBUILD = join(ROOT, `node_modules/@esbuild/${process.platform}-${process.arch}/bin/esbuild`);

export async function install(
  purposes: readonly Purpose[],
  instance: Instance,
  progress: Progress,
): Promise<void> {
  await progress.step("Debian packages", async (note) => {
    const missing = missingPackages(...purposes);
    if (missing.length > 0) await installPackages(missing, note);
  });
  await progress.step("The jail (make -C jail)", async (note) => {
    await mustRun(
      ["make", "--silent", `-j${availableParallelism()}`, "-C", join(ROOT, "jail")],
      "building the jail",
      {
        onLine: note,
      },
    );
  });
  await progress.step("The root image of the jails", async (note) => {
    await mustRun(imageCommand(instance), "building the root image", { onLine: note });
  });
}

function imageCommand(instance: Instance): string[] {
  const build = join(ROOT, "runtimes/image/build");
  return [build, "--out", instance.packagesDir, "--node", NODE, "--esbuild", ESBUILD, "--progress"];
}
