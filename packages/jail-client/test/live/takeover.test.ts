/** What code can do that got into a keeper or into the master: each call is made by the process itself, from outside of it. */
import {
  constants as files,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { descendants, isFiltered, until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash } from "@svc/test-kit/jail/run";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { exists, Injector, KILLED } from "../support/injection.ts";

const AT_FDCWD = -100;
const { EPERM, EACCES, ENOENT, ENOTDIR, EROFS, EBADF } = constants.errno;
const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_NOFOLLOW, O_DIRECTORY } = files;
const directory = mkdtempSync(join(tmpdir(), "svc-takeover-"));
const marker = join(directory, "marker");
writeFileSync(marker, "of the host");

let injector: Injector;
let jaild: Jaild;

const keeper = () => {
  const [pid] = jaild.keepers;
  if (pid === undefined) throw new Error("no keeper");
  return pid;
};
const fdsOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).map(Number);
/** Namespaces of the first process of a keeper's jail, as links of descriptors show them. */
const namespacesOfJail = (pid: number) => {
  const [init = 0] = descendants(pid);
  return new Set(readdirSync(`/proc/${init}/ns`).map((name) => readlinkSync(`/proc/${init}/ns/${name}`)));
};
const mountOf = (pid: number, fd: number) =>
  Number(/^mnt_id:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8"))?.[1]);
const lines = () =>
  jaild.log
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { level: number; slot?: number; msg: string });

/** In a system call, which is where a call can be put into its way. */
const untilWaiting = (pid: number) =>
  until(() => /^\d/.test(readFileSync(`/proc/${pid}/syscall`, "utf8")), "it waits");

/** A keeper that waits for a client, confined, with a complete jail. Those that a call has ended are on their way out. */
async function fresh(): Promise<number> {
  const isReady = () => {
    try {
      const pid = keeper();
      const below = descendants(pid);
      return (
        below.length === 1 &&
        below.every(isFiltered) &&
        /^NoNewPrivs:\t1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8")) &&
        /^\d/.test(readFileSync(`/proc/${pid}/syscall`, "utf8"))
      );
    } catch {
      return false;
    }
  };
  await until(isReady, "a keeper waits", 10_000);
  return keeper();
}

beforeAll(async () => {
  injector = new Injector();
  jaild = await Jaild.start({ slots: 1, zygotes: false });
});
beforeEach(async () => {
  if (jaild.ended) await jaild.restart();
});
afterAll(async () => {
  await jaild.stop();
  injector.remove();
  rmSync(directory, { recursive: true });
});

describe("code in a keeper", () => {
  const path = "/etc/hostname";
  const handle = Buffer.from("08000000010000000200000000000000", "hex"); // inode 2 of its file system
  const FORBIDDEN: [call: string, ...args: (number | string | Buffer)[]][] = [
    ["open_by_handle_at", AT_FDCWD, handle, O_RDONLY],
    ["name_to_handle_at", AT_FDCWD, path, Buffer.alloc(128), Buffer.alloc(8), 0],
    ["openat", AT_FDCWD, path, O_WRONLY],
    ["openat", AT_FDCWD, path, O_RDWR],
    ["openat", AT_FDCWD, path, O_RDONLY | O_TRUNC],
    ["openat", AT_FDCWD, path, O_WRONLY | O_CREAT, 0o600],
    ["socket", 1, 1, 0],
    ["socketpair", 1, 1, 0, Buffer.alloc(8)],
    ["connect", 0, Buffer.alloc(16), 16],
    ["clone", 17, 0],
    ["clone3", Buffer.alloc(88), 88],
    ["execve", "/bin/sh", 0, 0],
    ["execveat", AT_FDCWD, "/bin/sh", 0, 0, 0],
    ["kill", -1, 0],
    ["kill", 1, 0],
    ["tkill", 1, 0],
    ["tgkill", 1, 1, 0],
    ["rt_sigqueueinfo", 1, 0, Buffer.alloc(128)],
    ["pidfd_open", 1, 0],
    ["pidfd_getfd", 0, 0, 0],
    ["ptrace", 16, 1, 0, 0],
    ["process_vm_readv", 1, 0, 0, 0, 0, 0],
    ["mount", "none", "/tmp", "tmpfs", 0, 0],
    ["umount2", "/tmp", 2],
    ["fsopen", "tmpfs", 0],
    ["open_tree", AT_FDCWD, "/", 1],
    ["move_mount", AT_FDCWD, "/", AT_FDCWD, "/mnt", 0],
    ["mount_setattr", AT_FDCWD, "/", 0, Buffer.alloc(32), 32],
    ["pivot_root", ".", "."],
    ["chroot", "/"],
    ["chdir", "/"],
    ["setns", 0, 0],
    ["unshare", 0],
    ["bpf", 0, 0, 0],
    ["perf_event_open", 0, 0, 0, 0, 0],
    ["io_uring_setup", 1, Buffer.alloc(120)],
    ["userfaultfd", 0],
    ["init_module", 0, 0, 0],
    ["keyctl", 0, 0],
    ["setresuid", 0, 0, 0],
    ["capset", 0, 0],
    ["seccomp", 1, 0, 0],
    ["prctl", 8, 1],
    ["prctl", 22, 0],
    ["mprotect", 0, 4096, 7],
    ["mmap", 0, 4096, 7, 0x22, -1, 0],
    ["memfd_create", "x", 0],
    ["unlinkat", AT_FDCWD, path, 0],
    ["renameat2", AT_FDCWD, path, AT_FDCWD, "x", 0],
    ["linkat", AT_FDCWD, path, AT_FDCWD, "x", 0],
    ["mknodat", AT_FDCWD, "x", 0o20666, 0x101],
    ["fchmod", 0, 0o4755],
    ["ioctl", 0, 0x5412, 0],
    ["dup", 0],
    ["fcntl", 0, 1032, 0],
    ["reboot", 0, 0, 0, 0],
  ];

  it("dies of a call that keepers do not make, and the slot is filled again", async () => {
    const answers: [string, unknown, number | string][] = [];
    for (const [call, ...args] of FORBIDDEN.filter(([name]) => exists(name)))
      answers.push([call, args[0], injector.call(await fresh(), call, ...args)]);
    expect(answers.filter(([, , answer]) => answer !== KILLED)).toEqual([]);
    expect(answers.length).toBeGreaterThan(50);
    await until(
      () => lines().filter(({ msg }) => msg === "keeper killed by signal 31").length === answers.length,
      "all is said",
    );
    expect(lines().filter(({ slot, msg }) => slot !== 0 && msg.includes("keeper"))).toEqual([]);
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("opens by a handle through none of its descriptors", async () => {
    for (const fd of fdsOf(await fresh()))
      expect([fd, injector.call(await fresh(), "open_by_handle_at", fd, handle, 0)]).toEqual([fd, KILLED]);
  });

  it("finds nothing of the host by a name, from any directory that it has", async () => {
    const pid = await fresh();
    const up = "../".repeat(12);
    const [init] = descendants(pid);
    const found: unknown[] = [];
    const none = [ENOENT, ENOTDIR, EACCES, EROFS, EBADF, EPERM].map((errno) => -errno);
    for (const fd of [AT_FDCWD, ...fdsOf(pid)]) {
      const paths = [
        marker,
        `${up}${marker.slice(1)}`,
        `/proc/1/root${marker}`,
        `1/root${marker}`,
        `1/cwd/${up}${marker.slice(1)}`,
        `/proc/${init}/root${marker}`,
        `self/root${marker}`,
      ];
      for (const name of paths) {
        const answer = injector.call(pid, "openat", fd, name, O_RDONLY);
        if (!none.includes(Number(answer))) found.push([fd, name, answer]);
        const beneath = injector.call(pid, "openat2", fd, name, Buffer.alloc(24), 24);
        if (!none.includes(Number(beneath))) found.push([fd, "openat2", name, beneath]);
        const made = injector.call(
          pid,
          "openat",
          fd,
          `${name}.new`,
          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
          0o600,
        );
        if (!none.includes(Number(made))) found.push([fd, `${name}.new`, made]);
        const linked = injector.call(pid, "symlinkat", "x", fd, `${name}.link`);
        if (!none.includes(Number(linked))) found.push([fd, `${name}.link`, linked]);
      }
    }
    expect(found).toEqual([]);
    expect(readdirSync(directory)).toEqual(["marker"]);
    // Its own root holds the image, and what it works with is open to it.
    expect(injector.call(pid, "openat", AT_FDCWD, "/", O_RDONLY | O_DIRECTORY)).toBeGreaterThan(0);
    const created = (path: string) =>
      injector.call(pid, "openat", AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    expect([created("/made"), created("/image/etc/made")]).toEqual([-EROFS, -EROFS]);
    expect(injector.call(pid, "symlinkat", "x", AT_FDCWD, "/image/etc/link")).toBe(-EROFS);
    expect(injector.call(pid, "getpid")).toBe(KILLED);
  });

  it("works on when it makes calls that keepers do make", async () => {
    const pid = await fresh();
    const workspace = fdsOf(pid).find((fd) => {
      const answer = injector.call(
        pid,
        "openat",
        fd,
        "made",
        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
        0o600,
      );
      return Number(answer) > 0;
    });
    expect(workspace).toBeDefined();
    expect((await bash(jaild, "stat -c '%n %U %a' made; echo fine")).out).toMatch(/made .* 600\nfine\n$/);
    await until(() => jaild.keepers[0] !== pid, "it has ended");
  });

  it("writes to the log as itself only, and not without end", async () => {
    const pid = await fresh();
    const before = lines().length;
    const forged = `{"level":60,"time":1,"name":"jaild","slot":7,"msg":"forged"}\n`;
    injector.call(pid, "write", 2, forged, forged.length);
    await until(() => lines().length === before + 1, "the line is there");
    expect(lines().at(-1)).toMatchObject({ level: 40, slot: 0, msg: `output of the keeper: ${forged}` });
    for (let i = 0; i < 100; i++) injector.call(pid, "write", 1, "x".repeat(600), 600);
    await until(() => jaild.log.includes("too much"), "it is cut off");
    expect(lines().length).toBe(before + 65);
    expect((await bash(jaild, "echo fine")).out).toBe("fine\n");
    await until(() => jaild.keepers[0] !== pid, "it has ended");
  });
});

describe("descriptors", () => {
  it("of a keeper lead to its own jail, control files of its slot, and no mount of the host", async () => {
    const pid = await fresh();
    const host = new Map(
      readFileSync("/proc/self/mountinfo", "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => [Number(line.split(" ")[0]), / - (\S+)/.exec(line)?.[1]]),
    );
    const ofJail = namespacesOfJail(pid);
    for (const fd of fdsOf(pid)) {
      const link = readlinkSync(`/proc/${pid}/fd/${fd}`);
      const mount = host.get(mountOf(pid, fd));
      if (ofJail.has(link)) continue;
      if (mount === undefined)
        expect([fd, link]).toEqual([fd, expect.stringMatching(/^(pipe|socket|anon_inode|\/memfd|\/)/)]);
      else
        expect([fd, link, mount]).toEqual([
          fd,
          expect.stringMatching(/\/slot-0\/[a-z_.]+$/),
          expect.stringMatching(/^cgroup2?$/),
        ]);
    }
    expect([0, 1, 2].map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))).toEqual(
      Array(3).fill(expect.stringMatching(/^pipe:/)),
    );
  });

  it("that jaild is started with besides its streams are gone, in all of its processes", async () => {
    const inherited = [openSync(directory, "r"), openSync("/", "r"), openSync(marker, "r+")];
    const own = await Jaild.start({ slots: 1, inherited });
    try {
      await own.full();
      for (const pid of [own.pid, ...descendants(own.pid)])
        for (const fd of fdsOf(pid)) {
          const link = readlinkSync(`/proc/${pid}/fd/${fd}`);
          expect([pid, link === "/" || link.startsWith(directory)]).toEqual([pid, false]);
        }
      expect((await bash(own, "ls /proc/self/fd | wc -l")).out).toBe("4\n");
    } finally {
      await own.stop();
    }
  });
});

describe("code in the master", () => {
  it("has power over files, and no other capability", () => {
    const status = readFileSync(`/proc/${jaild.pid}/status`, "utf8");
    for (const set of ["CapPrm", "CapEff"])
      expect(status).toMatch(new RegExp(`^${set}:\t000000000000000b$`, "m"));
    for (const set of ["CapInh", "CapAmb", "CapBnd"])
      expect(status).toMatch(new RegExp(`^${set}:\t0000000000000000$`, "m"));
  });

  it("is refused what nothing of jaild needs", async () => {
    await untilWaiting(jaild.pid);
    for (const call of [
      "bpf",
      "ptrace",
      "open_by_handle_at",
      "init_module",
      "finit_module",
      "kexec_load",
      "process_vm_writev",
      "reboot",
      "perf_event_open",
      "userfaultfd",
      "io_uring_setup",
      "keyctl",
      "swapon",
    ])
      expect([call, injector.call(jaild.pid, call, 0, 0, 0, 0)]).toEqual([call, -EPERM]);
    expect(injector.call(jaild.pid, "getppid")).toBe(process.pid);
    expect((await bash(jaild, "echo fine")).out).toBe("fine\n");
    expect(statSync(marker).size).toBeGreaterThan(0);
  });
});
