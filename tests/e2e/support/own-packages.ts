/** A folder of packages as an operator makes one (docs/packages.md): a Debian package, an npm package and a wheel. Nothing is fetched but the first. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";

export function makeOwnPackages(folder: string): void {
  mkdirSync(join(folder, "npm"), { recursive: true });
  mkdirSync(join(folder, "wheels"));
  writeFileSync(join(folder, "packages"), "datamash   # sums of columns\n");
  writeFileSync(join(folder, "commands"), "datamash\n");
  makeNpm(join(folder, "npm"));
  writeWheel(join(folder, "wheels"), {
    name: "own_wheel",
    tag: "py3-none-any",
    module: "def hello():\n    return 'from a wheel'\n",
    // The image has it.
    requires: ["numpy"],
  });
}

/** An npm package in a tarball, and a package.json and a lock file that name it. */
function makeNpm(folder: string): void {
  const tarball = join(folder, "own-npm-1.2.3.tgz");
  const source = join(folder, "package");
  mkdirSync(source);
  const own = { name: "own-npm", version: "1.2.3", main: "index.js" };
  writeFileSync(join(source, "package.json"), JSON.stringify(own));
  writeFileSync(join(source, "index.js"), "exports.hello = () => 'from npm';\n");
  execFileSync("tar", ["-czf", tarball, "-C", folder, "package"]);
  rmSync(source, { recursive: true });
  const integrity = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`;
  const root = { name: "own", version: "1.0.0", dependencies: { "own-npm": "file:own-npm-1.2.3.tgz" } };
  const resolved = { version: "1.2.3", resolved: "file:own-npm-1.2.3.tgz", integrity };
  const packages = { "": root, "node_modules/own-npm": resolved };
  writeFileSync(join(folder, "package.json"), JSON.stringify(root));
  const lock = { name: "own", version: "1.0.0", lockfileVersion: 3, requires: true, packages };
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
}

export interface Wheel {
  name: string;
  tag: string;
  module: string;
  requires?: readonly string[];
}

export function writeWheel(folder: string, { name, tag, module, requires = [] }: Wheel): void {
  const info = `${name}-1.2.3.dist-info`;
  const needs = requires.map((other) => `Requires-Dist: ${other}\n`).join("");
  const files: Record<string, string> = {
    [`${name}.py`]: module,
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: 1.2.3\n${needs}`,
    [`${info}/WHEEL`]: `Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: ${tag}\n`,
  };
  const record = Object.entries(files).map(
    ([path, text]) =>
      `${path},sha256=${createHash("sha256").update(text).digest("base64url")},${Buffer.byteLength(text)}\n`,
  );
  files[`${info}/RECORD`] = `${record.join("")}${info}/RECORD,,\n`;
  writeFileSync(join(folder, `${name}-1.2.3-${tag}.whl`), zipOf(files));
}

/** A zip file whose members are stored as they are (APPNOTE.TXT of PKWARE, 4.3). */
function zipOf(files: Readonly<Record<string, string>>): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [path, text] of Object.entries(files)) {
    const [name, content] = [Buffer.from(path), Buffer.from(text)];
    // Version, flags, method, time, date, then checksum and both sizes.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x21, 8);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(content.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const made = Buffer.from([20, 3]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(0o644 << 16, 6);
    tail.writeUInt32LE(offset, 10);
    parts.push(Buffer.from("PK\x03\x04"), common, name, content);
    directory.push(Buffer.from("PK\x01\x02"), made, common, tail, name);
    offset += 4 + common.length + name.length + content.length;
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(Object.keys(files).length, 4);
  end.writeUInt16LE(Object.keys(files).length, 6);
  end.writeUInt32LE(size, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, ...directory, Buffer.from("PK\x05\x06"), end]);
}
