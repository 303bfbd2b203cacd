/**
 * Writes what is in each image as CycloneDX documents: svc.cdx.json, svc-runner.cdx.json, svc-redis.cdx.json.
 * Arguments: the folder for them, where these lie already: svc.status and redis.status, the dpkg status of the bases;
 * npm.json of `npm sbom`; root-image.packages, a line `NAME VERSION ARCHITECTURE SHA256` for each package of the root image.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface Part {
  type: "library";
  name: string;
  version: string;
  purl: string;
}

/** The installed packages of a dpkg status file. Pure. */
export function installedParts(status: string): Part[] {
  return status.split("\n\n").flatMap((paragraph) => {
    const field = (name: string) => new RegExp(`^${name}: (.+)$`, "m").exec(paragraph)?.[1];
    const [name, version, architecture] = [field("Package"), field("Version"), field("Architecture")];
    if (field("Status") !== "install ok installed" || !name || !version) return [];
    return [debianPart(name, version, architecture)];
  });
}

/** The packages of the root image's list. Pure. */
export function listedParts(list: string): Part[] {
  return list
    .split("\n")
    .map((line) => line.split(" "))
    .flatMap(([name, version, architecture]) =>
      name && version ? [debianPart(name, version, architecture)] : [],
    );
}

function debianPart(name: string, version: string, architecture = "all"): Part {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
  return { type: "library", name, version, purl };
}

function documentOf(name: string, version: string, components: readonly unknown[]): string {
  const metadata = { component: { type: "container", name, version } };
  return JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.5", version: 1, metadata, components });
}

export function writeDocuments(folder: string): void {
  const read = (name: string) => readFileSync(join(folder, name), "utf8");
  const npm = JSON.parse(read("npm.json")) as {
    metadata: { component: { version: string } };
    components: unknown[];
  };
  const { version } = npm.metadata.component;
  const svc = [...installedParts(read("svc.status")), ...npm.components];
  const runner = [...svc, ...listedParts(read("root-image.packages"))];
  const write = (name: string, parts: readonly unknown[]) =>
    writeFileSync(join(folder, `${name}.cdx.json`), `${documentOf(name, version, parts)}\n`);
  write("svc", svc);
  write("svc-runner", runner);
  write("svc-redis", installedParts(read("redis.status")));
}

if (import.meta.main) writeDocuments(process.argv[2] ?? ".");
