/** Makes the package that users install, in dist: JavaScript for Node 20 and browsers, and types. Run by `npm run pack:client`. */
import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = import.meta.dirname;
const dist = join(folder, "dist");
rmSync(dist, { recursive: true, force: true });
execFileSync("npx", ["tsc", "--project", folder], { cwd: folder, stdio: "inherit" });
const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const manifest = {
  name: "svc-client",
  version,
  license,
  description: "Client of svc, a self-hosted service that runs untrusted code.",
  type: "module",
  engines: { node: ">=20" },
  exports: {
    ".": { types: "./lib/index.d.ts", default: "./lib/index.js" },
    "./langchain": { types: "./lib/adapters/langchain.d.ts", default: "./lib/adapters/langchain.js" },
    "./ai": { types: "./lib/adapters/ai.d.ts", default: "./lib/adapters/ai.js" },
  },
  peerDependencies: { "@langchain/core": "1", ai: "7" },
  peerDependenciesMeta: { "@langchain/core": { optional: true }, ai: { optional: true } },
  files: ["lib"],
};
writeFileSync(join(dist, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
copyFileSync(join(folder, "../../LICENSE"), join(dist, "LICENSE"));
execFileSync("npm", ["pack", "--silent"], { cwd: dist, stdio: "inherit" });
