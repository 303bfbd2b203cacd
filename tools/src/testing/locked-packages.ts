/** npm packages that only one suite needs, in a folder of tests with a lock file of its own. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mustRun } from "@svc/cli/system/run";
import type { Note } from "@svc/cli/terminal";

/** Installs what the lock file of the folder names, without install scripts, unless it is there already. */
export async function installLocked(folder: string, size: string, note: Note): Promise<void> {
  // In the folder that `npm ci` removes first, so that it never vouches for half an installation.
  const mark = join(folder, "node_modules/.svc-installed");
  const wanted = createHash("sha256")
    .update(readFileSync(join(folder, "package-lock.json")))
    .digest("hex");
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return;
  note(size);
  await mustRun(["npm", "ci", "--ignore-scripts", "--loglevel=error"], `installing packages in ${folder}`, {
    cwd: folder,
    onLine: note,
  });
  writeFileSync(mark, wanted);
}
