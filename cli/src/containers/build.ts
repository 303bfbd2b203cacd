/**
 * Makes the bundles of an image, and a compile cache that every user of the images can read. The build of deploy/images runs
 * it with NODE_COMPILE_CACHE set. Arguments: the ids of these users.
 */
import { symlinkSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { basename, dirname, join } from "node:path";
import { buildBundles } from "../install/bundles.ts";
import { ROOT } from "../instance.ts";

await buildBundles([{ in: join(ROOT, "cli/src/containers/main.ts"), out: "containers" }]);
const cache = getCompileCacheDir();
if (cache === undefined) throw new Error("NODE_COMPILE_CACHE is not set");
// Node uses one cache folder for each user, whose name ends with the user id.
for (const uid of process.argv.slice(2))
  symlinkSync(basename(cache), join(dirname(cache), basename(cache).replace(/-\d+$/, `-${uid}`)));
