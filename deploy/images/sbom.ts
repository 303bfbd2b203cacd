/**
 * Writes what is in each image as CycloneDX documents: svc.cdx.json, svc-runner.cdx.json, svc-redis.cdx.json.
 * Arguments: the folder for them, where these lie already: svc.status and redis.status, the dpkg status of the bases;
 * package-lock.json; root-image.packages, a line `NAME VERSION ARCHITECTURE SHA256` for each package of the root image.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface Part {
  type: "library";
  name: string;
  version: string;
  purl: string;
  licenses?: { license: { id: string } }[];
  hashes?: { alg: string; content: string }[];
}

/** What package-lock.json says of a package, as far as it matters here. */
interface Locked {
  version?: string;
  license?: string;
  integrity?: string;
  dev?: boolean;
  link?: boolean;
  os?: string | string[];
  cpu?: string | string[];
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

/** What `npm ci --omit dev` installs on such a machine, but for the folders of the working copy itself. Pure. */
export function npmParts(packages: Readonly<Record<string, Locked>>, os: string, cpu: string): Part[] {
  const parts = Object.entries(packages).flatMap(([path, entry]) => {
    const [, name] = /node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? [];
    if (!name || !entry.version || entry.dev || entry.link) return [];
    return [entry.os ?? os].flat().includes(os) && [entry.cpu ?? cpu].flat().includes(cpu)
      ? [npmPart(name, entry.version, entry)]
      : [];
  });
  return [...new Map(parts.map((part) => [part.purl, part])).values()];
}

function npmPart(name: string, version: string, { license, integrity = "" }: Locked): Part {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const [, sha512] = /^sha512-(\S+)$/.exec(integrity) ?? [];
  return {
    type: "library",
    name,
    version,
    purl,
    ...(license && { licenses: [{ license: { id: license } }] }),
    ...(sha512 && { hashes: [{ alg: "SHA-512", content: Buffer.from(sha512, "base64").toString("hex") }] }),
  };
}

function debianPart(name: string, version: string, architecture = "all"): Part {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
  return { type: "library", name, version, purl };
}

function documentOf(name: string, version: string, components: readonly Part[]): string {
  const metadata = { component: { type: "container", name, version } };
  return JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.5", version: 1, metadata, components });
}

export function writeDocuments(folder: string): void {
  const read = (name: string) => readFileSync(join(folder, name), "utf8");
  const { version, packages } = JSON.parse(read("package-lock.json")) as {
    version: string;
    packages: Record<string, Locked>;
  };
  const npm = npmParts(packages, process.platform, process.arch);
  const svc = [...installedParts(read("svc.status")), ...npm];
  const runner = [...svc, ...listedParts(read("root-image.packages"))];
  const write = (name: string, parts: readonly Part[]) =>
    writeFileSync(join(folder, `${name}.cdx.json`), `${documentOf(name, version, parts)}\n`);
  write("svc", svc);
  write("svc-runner", runner);
  write("svc-redis", installedParts(read("redis.status")));
}

if (import.meta.main) writeDocuments(process.argv[2] ?? ".");
