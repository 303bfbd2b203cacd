/**
 * What microVMs start from: a kernel, and a root image with the same content as the copy's own root image
 * (services/launcher/guest/build).
 */
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { type Instance, ROOT } from "../instance.ts";
import type { Environment } from "../settings.ts";
import { mustRun } from "../system/run.ts";
import type { Note } from "../terminal.ts";

/** The last of them is written when the others are complete. */
const FILES = ["vmlinuz", "initrd", "system.erofs", "sealed-memory", "SHA256SUMS"] as const;
const BUILD = join(ROOT, "services/launcher/guest/build");

/**
 * A folder inside the root image that it is built from, and removed with that image; or the folder that the operator names.
 */
export function guestFolder({ image }: Pick<Instance, "image">, { LAUNCHER_ROOTFS }: Environment): string {
  return LAUNCHER_ROOTFS || join(image, "guest");
}

/** Names of the files that are missing in a folder of LAUNCHER_ROOTFS. */
export function missingFiles(folder: string): string[] {
  return FILES.filter((name) => !existsSync(join(folder, name)));
}

/** The path of the kernel; undefined when there is none yet. */
export function guestKernel(instance: Pick<Instance, "image">, caller: Environment): string | undefined {
  const kernel = join(guestFolder(instance, caller), "vmlinuz");
  return existsSync(kernel) ? kernel : undefined;
}

/** Builds what is missing or out of date. A folder that the operator names is used unchanged. */
export async function buildGuest(instance: Instance, caller: Environment, note: Note): Promise<void> {
  if (caller.LAUNCHER_ROOTFS) return;
  const image = realpathSync(instance.image);
  note("a kernel of Debian, and a root image: about a minute at first");
  await mustRun([BUILD, join(image, "guest"), image], "building what microVMs start from", { onLine: note });
}

/** What is wrong with the folder that the operator names. */
export function guestProblems({ LAUNCHER_ROOTFS }: Environment): string[] {
  if (!LAUNCHER_ROOTFS) return [];
  const missing = missingFiles(LAUNCHER_ROOTFS);
  if (missing.length === 0) return [];
  return [
    `LAUNCHER_ROOTFS=${LAUNCHER_ROOTFS} lacks ${missing.join(", ")}: unset it, and ./svc up builds what microVMs start from, or make it with services/launcher/guest/build`,
  ];
}
