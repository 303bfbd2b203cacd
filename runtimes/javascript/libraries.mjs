/**
 * Runs in the image. Makes the packages that the package.json of each folder names (/usr/lib/svc/npm/<n>, see
 * runtimes/image/lib/libraries) visible to programs through /node_modules, where Node.js looks last, whatever folder a
 * program lies in. The dependencies of these packages are not visible. When two folders name the same package, the later
 * one counts. Writes the list that callers see.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

const TREES = "/usr/lib/svc/npm";
const VISIBLE = "/usr/lib/node_modules";
const LISTS = "/usr/lib/svc/installed";

const read = (...path) => JSON.parse(readFileSync(join(...path), "utf8"));
const trees = existsSync(TREES) ? readdirSync(TREES).sort((one, other) => Number(one) - Number(other)) : [];
const versions = new Map();
for (const tree of trees) {
  for (const name of Object.keys(read(TREES, tree, "package.json").dependencies ?? {})) {
    const target = join(TREES, tree, "node_modules", name);
    const link = join(VISIBLE, name);
    mkdirSync(dirname(link), { recursive: true });
    rmSync(link, { force: true });
    symlinkSync(target, link);
    versions.set(name, read(target, "package.json").version);
  }
}
if (versions.size > 0) symlinkSync(VISIBLE.slice(1), "/node_modules");

mkdirSync(LISTS, { recursive: true });
const list = [...versions].sort().map(([name, version]) => `${name} ${version}\n`);
for (const language of ["javascript", "node", "typescript"])
  writeFileSync(join(LISTS, language), list.join(""));
