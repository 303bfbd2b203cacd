/** Programs of an image that run while it is built: as root without rights, without a network, with the image's files alone. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packagesDirectory } from "./support/program.ts";

const INSIDE = join(import.meta.dirname, "../../image/lib/inside");
const ROOTFS = realpathSync(join(packagesDirectory, "rootfs"));

/** As the build does it: in a mount and pid namespace of its own, with /proc, below a process of full rights, and with a descriptor that nobody closed. */
const PREPARE = `
mount -t proc -o ro proc "$2/proc"
mount -t tmpfs -o mode=1777 tmpfs "$2/tmp"
exec 251</etc/hostname
"$@"
true
`;

function inside(...command: string[]): string {
  const { stdout, stderr } = spawnSync(
    "/usr/bin/unshare",
    [
      ...["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"],
      ...["/bin/bash", "-ec", PREPARE, "bash", INSIDE, ROOTFS, ...command],
    ],
    { encoding: "utf8" },
  );
  return stdout + stderr;
}

const python = (code: string) => inside("/usr/bin/python3", "-c", code);

test("a program has no capability but the one for chroot, and can get none", () => {
  const status = inside("/usr/bin/cat", "/proc/self/status");
  for (const set of ["CapPrm", "CapEff", "CapBnd"])
    expect(status).toMatch(new RegExp(`^${set}:\\s+0+40000$`, "m"));
  expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
});

test("a program has the standard descriptors only", () => {
  expect(inside("/usr/bin/ls", "-C", "/proc/self/fd").trim().split(/\s+/)).toEqual(["0", "1", "2", "3"]);
});

test("a program has no network but an own one without addresses", () => {
  const devices = inside("/usr/bin/cat", "/proc/net/dev").match(/^ *\w+:/gm);
  expect(devices?.map((name) => name.trim())).toEqual(["lo:"]);
});

test("a program that leaves its root finds the image's again, by every way out", () => {
  const code = `
import os
os.mkdir("/tmp/x"); os.chroot("/tmp/x")
for _ in range(64): os.chdir("..")
os.chroot(".")
print(os.path.exists("/usr/lib/svc"), os.path.exists("${import.meta.dirname}"))
try: print(os.listdir("/proc/1/root"))
except OSError as error: print(error.strerror)
`;
  expect(python(code)).toBe("True False\nPermission denied\n");
});

test("a program makes no device and no mount; it writes files, as setup scripts do", () => {
  const code = `
import ctypes, os, stat
try: os.mknod("/tmp/disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))
except OSError as error: print(error.strerror)
libc = ctypes.CDLL(None, use_errno=True)
print(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), os.strerror(ctypes.get_errno()))
open("/tmp/file", "w").write("made"); print(open("/tmp/file").read())
`;
  expect(python(code)).toBe("Operation not permitted\n-1 Operation not permitted\nmade\n");
});

test("a program can signal itself alone, and is the first of its own processes, with which they end", () => {
  const code = `
import os
def reaches(pid):
    try: os.kill(pid, 0)
    except OSError: return False
    return True
pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
print(os.getpid(), [pid for pid in pids if reaches(pid)], len(pids) > 2)
`;
  expect(python(code)).toBe("1 [1] True\n");
});

test.each(["usr/share", "usr/lib/svc/absent", "root", "usr/lib/svc/installed/python"])(
  "a link that a program leaves at /%s ends the build before the host follows it",
  (path) => {
    const root = mkdtempSync(join(tmpdir(), "svc-image-links-"));
    const refuse = () =>
      spawnSync("/bin/bash", [join(INSIDE, "../assemble"), root, "refuse_links", "/node", "/esbuild"], {
        encoding: "utf8",
      });
    try {
      mkdirSync(join(root, path, ".."), { recursive: true });
      expect(refuse()).toMatchObject({ status: 0, stderr: "" });
      symlinkSync("/nonexistent", join(root, path));
      const { status, stderr } = refuse();
      expect(status).toBe(1);
      expect(stderr).toContain(`Cannot build the image: /${path} of the image became a link`);
    } finally {
      rmSync(root, { recursive: true });
    }
  },
);
