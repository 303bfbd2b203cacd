import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packagesDirectory } from "./support/program.ts";

const script = resolve(import.meta.dirname, "../../image/build");
const scratch = mkdtempSync(join(tmpdir(), "svc-build-test-"));
// Stand-ins of their own content: an image built from the real binaries is never touched or taken for fresh.
const node = join(scratch, "node");
const esbuild = join(scratch, "esbuild");

const build = (args: string[], env: Record<string, string> = {}) =>
  spawnSync(script, args, { encoding: "utf8", env: { PATH: process.env.PATH ?? "", ...env } });

/** Processor time of a command that succeeds: other work on the machine does not count. */
function cpuSeconds(command: readonly string[]): number {
  const measured = spawnSync("bash", ["-c", 'TIMEFORMAT="%U %S"; time "$@"', "timed", ...command], {
    encoding: "utf8",
  });
  expect(measured.status).toBe(0);
  const [user = 0, system = 0] = measured.stderr.trim().split(" ").map(Number);
  return user + system;
}

beforeAll(() => {
  for (const file of [node, esbuild]) copyFileSync("/bin/true", file);
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe("the build of the image", () => {
  it.each([
    ["an unknown option", ["--speed", "9"], "unknown option --speed"],
    ["an option without its value", ["--out"], "the last option needs a value"],
    ["no folder to build into", ["--node", node, "--esbuild", esbuild], "--out is missing"],
    [
      "a node that is not there",
      ["--out", scratch, "--node", "/none", "--esbuild", esbuild],
      "--node '/none' is no executable file",
    ],
    [
      "an esbuild that is a folder",
      ["--out", scratch, "--node", node, "--esbuild", "/"],
      "--esbuild '/' is no executable file",
    ],
  ])("refuses %s and says what to do", (_what, args, problem) => {
    const { status, stderr, stdout } = build(args);
    expect(status).toBe(1);
    expect(stderr).toContain(`Cannot build the image: ${problem}`);
    expect(stderr).toContain("\nWhat to do: ");
    expect(stdout).toBe("");
  });

  it("takes folders of packages whose paths have spaces", () => {
    const folders = ["my team", "other"].map((name) => join(scratch, name));
    for (const folder of folders) {
      mkdirSync(folder);
      writeFileSync(join(folder, "packages"), "");
    }
    const out = join(scratch, "with-packages");
    const { status, stderr } = build([
      ...["--out", out, "--node", node, "--esbuild", esbuild],
      ...["--packages", folders.join(","), "--check"],
    ]);
    expect({ status, stderr }).toEqual({ status: 3, stderr: "" });
  });

  it("says that it needs root", () => {
    const out = join(scratch, "unprivileged");
    mkdirSync(out, { mode: 0o777 });
    const { status, stderr } = spawnSync(
      "setpriv",
      [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        script,
        "--out",
        out,
        "--node",
        "/bin/true",
        "--esbuild",
        "/bin/true",
      ],
      { encoding: "utf8" },
    );
    // The checkout itself may be closed to other users; then nothing but its refusal can be seen.
    if (!stderr.includes("Permission denied"))
      expect(stderr).toContain("needs root.\nWhat to do: run the same command with sudo");
    expect(status).not.toBe(0);
  });

  it("explains a mirror that does not answer, and leaves the image that was there", () => {
    const out = join(scratch, "kept");
    mkdirSync(join(out, "image-0.old/rootfs"), { recursive: true });
    spawnSync("ln", ["-s", "image-0.old", join(out, "current")]);
    const { status, stderr } = build([
      "--out",
      out,
      "--node",
      node,
      "--esbuild",
      esbuild,
      "--progress",
      "--mirror",
      "http://127.0.0.1:9/debian",
    ]);
    expect(status).toBe(1);
    expect(stderr).toContain("[1/7] read the package lists ...");
    expect(stderr).toContain("What to do: check the network and the host's apt sources");
    expect(readlinkSync(join(out, "current"))).toBe("image-0.old");
    expect(readdirSync(out).filter((name) => name.startsWith("building."))).toEqual([]);
  });

  it("answers at once when the image is there", () => {
    const tools = resolve(import.meta.dirname, "../../../node_modules");
    const args = [
      "--out",
      packagesDirectory,
      "--node",
      `${tools}/node-linux-${process.arch}/bin/node`,
      "--esbuild",
      `${tools}/@esbuild/linux-${process.arch}/bin/esbuild`,
    ];
    // In starts of Node on this machine, now: --check runs at each ./svc up, which starts Node for every component.
    const [answers, starts] = [[] as number[], [] as number[]];
    for (let i = 0; i < 5; i++) {
      answers.push(cpuSeconds([script, ...args, "--check"]));
      starts.push(cpuSeconds([process.execPath, "-e", "0"]));
    }
    expect(Math.min(...answers)).toBeLessThan(3 * Math.min(...starts));
  });

  it("tells that an image of other binaries is not up to date, without building", () => {
    const { status, stderr } = build([
      "--out",
      packagesDirectory,
      "--node",
      node,
      "--esbuild",
      esbuild,
      "--check",
    ]);
    expect({ status, stderr }).toEqual({ status: 3, stderr: "" });
  });

  it("does not put an image over a folder that it did not make", () => {
    const out = join(scratch, "foreign");
    mkdirSync(join(out, "rootfs"), { recursive: true });
    writeFileSync(join(out, "rootfs/mine"), "");
    const { status, stderr } = build(["--out", out, "--node", node, "--esbuild", esbuild]);
    expect(status).toBe(1);
    expect(stderr).toContain("rootfs is in the way");
    expect(readdirSync(join(out, "rootfs"))).toEqual(["mine"]);
  });
});
