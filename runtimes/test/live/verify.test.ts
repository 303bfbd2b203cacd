/** The Debian packages of an image against the manifest in the repository. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { packagesDirectory } from "./support/program.ts";

const IMAGE = resolve(import.meta.dirname, "../../image");
const TOOLS = resolve(import.meta.dirname, "../../../node_modules");
const scratch = mkdtempSync(join(tmpdir(), "svc-verify-test-"));
const out = join(scratch, "apt");

beforeEach(() => {
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(join(out, "archives"), { recursive: true });
  mkdirSync(join(scratch, "debs"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

function download(name: string, content: string): string {
  writeFileSync(join(out, "archives", name), content);
  return name;
}

function manifest(...lines: string[]): void {
  writeFileSync(join(scratch, "debs/release-machine"), lines.map((line) => `${line}\n`).join(""));
}

function verify(debs: readonly string[], strict: "yes" | "no") {
  const script = `
    set -euo pipefail
    export LC_ALL=C
    IMAGE_DIR=$1 APT_DIR=$1/apt SUITE=release ARCH=machine STRICT=$2 PROGRESS=no
    shift 2
    DEBS=("$@")
    source ${IMAGE}/lib/report
    source ${IMAGE}/lib/verify
    verify_packages "$IMAGE_DIR/packages"`;
  return spawnSync("/bin/bash", ["-c", script, "bash", scratch, strict, ...debs], { encoding: "utf8" });
}

describe("packages as they are in the manifest", () => {
  test("are taken, and remembered by name, version, architecture and hash", () => {
    const debs = [download("b_2%3a1.0-1_amd64.deb", "b"), download("a_1+x~2_all.deb", "a")];
    const lines = [`a 1+x~2 all ${sha256("a")}`, `b 2:1.0-1 amd64 ${sha256("b")}`];
    manifest(...lines);
    const { status, stderr } = verify(debs, "yes");
    expect([status, stderr]).toEqual([0, ""]);
    expect(readFileSync(join(scratch, "packages"), "utf8")).toBe(lines.map((line) => `${line}\n`).join(""));
  });
});

describe.each([
  ["another version", "a_2_all.deb", "a", "Not in the manifest: a 2 (there: 1)"],
  ["another content", "a_1_all.deb", "other", "Not in the manifest: a 1 (there: 1)"],
  ["a name of its own", "new_1_all.deb", "a", "Not in the manifest: new 1 (there: none)"],
])("a package of %s", (_what, name, content, told) => {
  test("is told and used", () => {
    manifest(`a 1 all ${sha256("a")}`);
    const { status, stderr } = verify([download(name, content)], "no");
    expect(status).toBe(0);
    expect(stderr).toContain(told);
  });

  test("is refused when that is asked for", () => {
    manifest(`a 1 all ${sha256("a")}`);
    const { status, stderr } = verify([download(name, content)], "yes");
    expect(status).toBe(1);
    expect(stderr).toContain(told);
    expect(stderr).toContain("Cannot build the image: 1 Debian packages are not those of");
  });
});

test("without a manifest for a release every package is told, and refused when that is asked for", () => {
  const debs = [download("a_1_all.deb", "a")];
  expect(verify(debs, "no")).toMatchObject({ status: 0, stderr: "Not in the manifest: a 1 (there: none)\n" });
  expect(verify(debs, "yes").status).toBe(1);
});

test("an image that is there is good enough, but not for a strict start when its packages differ", () => {
  const name = readlinkSync(join(packagesDirectory, "current"));
  const built = join(scratch, name);
  mkdirSync(built);
  for (const file of ["packages", "runtimes.json"]) {
    cpSync(join(packagesDirectory, "current", file), join(built, file));
  }
  symlinkSync(name, join(scratch, "current"));
  const check = (...more: string[]) =>
    spawnSync(
      join(IMAGE, "build"),
      [
        ...["--out", scratch, "--check", ...more],
        ...["--node", `${TOOLS}/node-linux-${process.arch}/bin/node`],
        ...["--esbuild", `${TOOLS}/@esbuild/linux-${process.arch}/bin/esbuild`],
      ],
      { encoding: "utf8" },
    ).status;
  const own = readFileSync(join(built, "packages"), "utf8");
  const release = readdirSync(join(IMAGE, "debs")).map((file) =>
    readFileSync(join(IMAGE, "debs", file), "utf8"),
  );
  const isKnown = own.split("\n").every((line) => release.some((text) => text.split("\n").includes(line)));
  expect([check(), check("--strict")]).toEqual([0, isKnown ? 0 : 3]);
  writeFileSync(join(built, "packages"), own.replace(/[0-9a-f]{64}/, "0".repeat(64)));
  expect([check(), check("--strict")]).toEqual([0, 3]);
});
