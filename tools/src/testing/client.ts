/** The npm package that the client tests run. It is large and nothing else needs it, so it has a lock file of its own. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { mustRun } from "@svc/cli/system/run";
import type { Note } from "@svc/cli/terminal";

const FOLDER = join(ROOT, "tests/client");
/** Lies in the folder that `npm ci` removes first, so that it never vouches for half an installation. */
const INSTALLED = join(FOLDER, "node_modules/.svc-installed");

/** Installs what tests/client/package-lock.json names, without install scripts, unless it is there already. */
export async function installTestClient(note: Note): Promise<void> {
  const wanted = createHash("sha256")
    .update(readFileSync(join(FOLDER, "package-lock.json")))
    .digest("hex");
  if (existsSync(INSTALLED) && readFileSync(INSTALLED, "utf8") === wanted) return;
  note("about 550 MB");
  await mustRun(["npm", "ci", "--ignore-scripts", "--loglevel=error"], "installing the client", {
    cwd: FOLDER,
    onLine: note,
  });
  writeFileSync(INSTALLED, wanted);
}
