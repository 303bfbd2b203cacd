/** The npm package that the client tests run. It is large and nothing else needs it, so it has a lock file of its own. */
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import type { Note } from "@svc/cli/terminal";
import { installLocked } from "./locked-packages.ts";

export async function installTestClient(note: Note): Promise<void> {
  await installLocked(join(ROOT, "tests/client"), "about 550 MB", note);
}
