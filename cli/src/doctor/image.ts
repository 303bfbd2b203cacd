/** Checks the root image: which languages it has, and whether its Debian packages match the repository's manifest. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Instance, ROOT } from "../instance.ts";
import { svcLine } from "../svc-line.ts";
import { type Finding, ok, warn } from "./finding.ts";

const SHOWN = 3;
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

export function image({ image: folder }: Instance): Finding[] {
  const text = read(join(folder, "runtimes.json"));
  if (text === undefined) return [warn("image", "not built yet", `${svcLine("up")} builds it.`)];
  const { runtimes } = JSON.parse(text) as { runtimes: { language: string; version: string }[] };
  const languages = runtimes.map(({ language, version }) => `${language} ${version}`).join(", ");
  const release = /^VERSION_CODENAME=(\w+)$/m.exec(read(join(folder, "rootfs/etc/os-release")) ?? "")?.[1];
  const manifest = join(ROOT, `runtimes/image/debs/${release}-${ARCHITECTURES[process.arch]}`);
  return [
    ok("image", languages),
    packagesFinding(read(join(folder, "packages")) ?? "", read(manifest) ?? ""),
  ];
}

/** Both: lines of name, version, architecture and hash. */
export function packagesFinding(own: string, manifest: string): Finding {
  const known = new Set(manifest.split("\n"));
  const packages = own.split("\n").filter(Boolean);
  const others = packages.filter((line) => !known.has(line));
  if (packages.length > 0 && others.length === 0)
    return ok("image packages", `${packages.length}, all as in the repository's manifest`);
  const named = others.slice(0, SHOWN).map((line) => line.split(" ").slice(0, 2).join(" "));
  const more = others.length > SHOWN ? ", …" : "";
  return warn(
    "image packages",
    packages.length === 0
      ? "the image does not tell its packages"
      : `image differs from the repository's manifest: ${others.length} packages (${named.join(", ")}${more})`,
    packages.length === 0
      ? `${svcLine("up")} builds it anew.`
      : "A newer svc may know them; SVC_IMAGE_STRICT=true refuses them; runtimes/README.md tells how to renew the manifest.",
  );
}

function read(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
