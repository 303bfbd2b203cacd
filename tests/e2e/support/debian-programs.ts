/**
 * Programs of Debian packages for tests, unpacked below node_modules instead of installed: no service is started or enabled
 * on the machine. Only for packages whose libraries every Debian system has.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { findProgram } from "@svc/cli/system/root";
import { mustRun, run } from "@svc/cli/system/run";

const CACHE = join(ROOT, "node_modules/.cache/debian");

/** Path of the program: the system's, or from the unpacked package of the same name. `file`: its path in the package. */
export async function debianProgram(name: string, file: string): Promise<string> {
  const installed = findProgram(name);
  if (installed !== undefined) return installed;
  const folder = join(CACHE, name);
  if (!existsSync(join(folder, file))) await unpack(name, folder);
  return join(folder, file);
}

async function unpack(name: string, folder: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, "new-"));
  try {
    await download(name, work);
    const archive = readdirSync(work).find((entry) => entry.endsWith(".deb"));
    const tree = join(work, "tree");
    await mustRun(["dpkg-deb", "-x", join(work, archive ?? ""), tree], `unpacking ${name}`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(tree, folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** A machine whose package lists are missing or old gets them once. */
async function download(name: string, cwd: string): Promise<void> {
  const command = ["apt-get", "download", name];
  if ((await run(command, { cwd })).code === 0) return;
  await mustRun(["apt-get", "update", "-q"], "apt-get update");
  await mustRun(command, `downloading the package ${name}`, { cwd });
}
