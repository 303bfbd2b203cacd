/** A guest that is hostile from its first program on: root with every capability, against QEMU and the launcher's side of its wires. */
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ACCELERATOR,
  buildGuest,
  guestProcesses,
  IMAGE,
  memoryFiles,
  UID_BASE,
} from "@svc/test-kit/system/guests";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Guest } from "../../src/guests/guest.ts";
import { qemu } from "../../src/monitor/qemu.ts";

const PROGRAM = join(import.meta.dirname, "support/hostile-init.c");
const BOOT_MS = 200_000;
/** Numbers of virtio's kinds: a disk, a console with ports, random numbers. */
const KINDS = ["2", "3", "3", "3", "4"];

let folder: string;
beforeAll(() => {
  buildGuest();
  folder = mkdtempSync(join(tmpdir(), "svc-hostile-guest-"));
  chmodSync(folder, 0o755);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The files that guests start from, with this program as the first one. */
function imageWith(attack: string): string {
  const image = join(folder, attack);
  const tree = join(image, "tree");
  mkdirSync(tree, { recursive: true });
  execFileSync("bash", [
    "-c",
    `cd "$1" && cpio --quiet --extract --make-directories <"$2"`,
    "-",
    tree,
    join(IMAGE, "initrd"),
  ]);
  execFileSync("cc", [
    "-std=gnu11",
    "-D_GNU_SOURCE",
    `-DATTACK="${attack}"`,
    "-O1",
    "-static",
    "-o",
    join(tree, "init"),
    PROGRAM,
  ]);
  execFileSync("bash", [
    "-c",
    `cd "$1" && find . | cpio --quiet --create --format=newc --owner=0:0 >"$2"`,
    "-",
    tree,
    join(image, "initrd"),
  ]);
  for (const name of ["vmlinuz", "system.erofs"]) {
    try {
      linkSync(join(IMAGE, name), join(image, name));
    } catch {
      copyFileSync(join(IMAGE, name), join(image, name));
    }
  }
  return image;
}

test.each([
  ["wires", 1],
  ["registers", 2],
  ["ports", 3],
])(
  "a guest that is taken over finds a disk that it cannot write and three wires; it attacks %s, and ends alone",
  async (attack, number) => {
    const lines: string[] = [];
    const image = imageWith(attack);
    const before = readFileSync(join(image, "system.erofs")).subarray(0, 4096);
    const opened: number[] = [];
    const guest = new Guest({
      monitor: qemu(ACCELERATOR),
      machine: {
        image,
        verified: true,
        ramMib: 512,
        vcpus: 1,
        logLevel: 1,
        user: { uid: UID_BASE + number, gid: UID_BASE + number },
        onConsole: (line) => lines.push(line),
      },
      env: {},
      // Nobody listens there: what a guest may reach is the gateway, and that is not here.
      connectGateway: () => {
        opened.push(1);
        return connect({ port: 1, host: "127.0.0.1" });
      },
      bootMs: BOOT_MS,
    });
    const ready = guest.ready().then(
      () => "ready",
      () => "not ready",
    );
    expect(await ready).toBe("not ready");
    await guest.ended;
    const said = (what: string) => lines.find((line) => line.startsWith(`${what}: `))?.slice(what.length + 2);
    expect(said("user")).toBe("0");
    expect(said("network")).toBe("lo");
    expect(said("disks")).toBe("vda");
    expect(said("kinds")?.split(" ").sort()).toEqual(KINDS);
    // What it says after the last of the bytes that end it is not read.
    if (attack === "ports") expect(said("iopl")).toBe("allowed");
    if (attack === "registers") expect(said("registers")).toBe("reached");
    expect(said("disk")).toMatch(
      /^(not written|Operation not permitted|Read-only file system|Permission denied)$/,
    );
    expect(readFileSync(join(image, "system.erofs")).subarray(0, 4096).equals(before)).toBe(true);
    await expect.poll(() => guestProcesses().filter(({ uid }) => uid === UID_BASE + number)).toEqual([]);
    expect(memoryFiles()).toEqual([]);
  },
);
