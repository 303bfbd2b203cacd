/** What code can do that got into a zygote: while it imports the image's libraries, and while it waits for requests. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { descendants, isAlive, namespaces, until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { runPython } from "@svc/test-kit/jail/warm";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { exists, Injector, numberOf } from "../support/injection.ts";

const { EPERM, ENOSYS, EINVAL, EACCES } = constants.errno;
/** What jaild takes when it is not told. */
const UID_BASE = 200_000;
const NEWNS = 0x20000;
const NEWPID = 0x20000000;
const AT_FDCWD = -100;

/** Each with arguments that root's capabilities would do. */
const FORBIDDEN = (
  [
    ["mount", "none", "/tmp", "tmpfs", 0, 0],
    ["umount2", "/tmp", 2],
    ["pivot_root", "/tmp", "/tmp"],
    ["chroot", "/tmp"],
    ["fsopen", "tmpfs", 0],
    ["fspick", AT_FDCWD, "/tmp", 0],
    ["open_tree", AT_FDCWD, "/", 1],
    ["move_mount", AT_FDCWD, "/tmp", AT_FDCWD, "/tmp", 0],
    ["mount_setattr", AT_FDCWD, "/", 0, "", 32],
    ["unshare", NEWNS],
    ["unshare", NEWPID],
    ["setns", 0, NEWNS],
    ["setns", 0, NEWPID],
    ["sethostname", "other", 5],
    ["setdomainname", "other", 5],
    ["ptrace", 16, 1, 0, 0],
    ["process_vm_readv", 1, 0, 0, 0, 0, 0],
    ["pidfd_getfd", 0, 0, 0],
    ["kcmp", 1, 1, 0, 0, 0],
    ["bpf", 0, 0, 0],
    ["perf_event_open", 0, 0, -1, -1, 0],
    ["open_by_handle_at", AT_FDCWD, "", 0],
    ["name_to_handle_at", AT_FDCWD, "/", "", 0, 0],
    ["init_module", 0, 0, ""],
    ["finit_module", 0, "", 0],
    ["kexec_load", 0, 0, 0, 0],
    ["swapon", "/tmp", 0],
    ["quotactl", 0, "", 0, 0],
    ["syslog", 3, 0, 0],
    ["fanotify_init", 0, 0],
    ["io_uring_setup", 1, 0],
    ["userfaultfd", 0],
    ["keyctl", 0, -1, 1],
    ["socket", 2, 1, 0],
    ["socket", 16, 3, 0],
  ] as [string, ...(number | string)[]][]
).filter(([call]) => exists(call));

let injector: Injector;
let jaild: Jaild;
beforeAll(() => {
  injector = new Injector();
});
afterEach(() => jaild.stop());
afterAll(() => injector.remove());

/** A program in the place of a zygote's script: what it wrote when it ended, as the master logs it. */
async function inPlaceOfScript(code: string): Promise<string> {
  const args = ["--zygote", "probe", "--zygote-script", "/none"];
  for (const word of ["/usr/bin/python3", "-c", code]) args.push("--zygote-argument", word);
  jaild = await Jaild.start({ slots: 1, zygotes: false, args });
  const said = () => /the zygote probe died: (.*?)"}/.exec(jaild.log)?.[1];
  await until(() => said() !== undefined, "the zygote has said what it can do", 30_000);
  return said() ?? "";
}

const python = (word: number | string) => (typeof word === "number" ? `${word}` : `b"${word}"`);

it("code that a zygote imports is refused what only root may do", async () => {
  const calls = FORBIDDEN.map(([call, ...words]) => `("${call}", ${numberOf(call)}, ${words.map(python)}),`);
  const said = await inPlaceOfScript(`
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long
def refused(number, *words):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    return libc.syscall(ctypes.c_long(number), *words) == -1 and ctypes.get_errno() in (${EPERM}, ${ENOSYS})
calls = [${calls.join(" ")}]
print(len(calls), [name for name, *call in calls if not refused(*call)], file=sys.stderr)
`);
  expect(said).toContain(`${FORBIDDEN.length} []`);
});

it("code that a zygote imports has no process of the host but by number, and no namespace but its own", async () => {
  const said = await inPlaceOfScript(`
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
first = os.pidfd_open(1)
def enter(fd, kind): return libc.setns(fd, kind) and ctypes.get_errno()
print(enter(first, ${NEWNS}), enter(first, 0), os.listdir("/proc"), sorted(os.listdir("/dev"))[:0], file=sys.stderr)
`);
  expect(said).toContain(`${EPERM} ${EINVAL} [] []`);
});

describe("a zygote that waits", () => {
  const start = async () => {
    jaild = await Jaild.start({ slots: 1, zygotes: ["python"] });
    await jaild.warm();
    const [pid = 0] = jaild.zygotes;
    await until(() => /^\d/.test(readFileSync(`/proc/${pid}/syscall`, "utf8")), "it waits");
    return pid;
  };

  it("has two capabilities and the policy of zygotes, which its copies inherit below their own", async () => {
    const pid = await start();
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    for (const set of ["CapPrm", "CapEff", "CapBnd"])
      expect(status).toMatch(new RegExp(`^${set}:\t0000000000240000$`, "m"));
    const filters = (text: string) => Number(/^Seccomp_filters:\t(\d+)$/m.exec(text)?.[1]);
    const own = { files: { "main.py": "print(open('/proc/self/status').read())" } };
    const cold = filters((await runPython(jaild, undefined, own)).out);
    expect(filters(status)).toBe(cold);
    await jaild.full();
    expect(filters((await runPython(jaild, "python", own)).out)).toBe(cold + 1);
  });

  it("is refused what only root may do, and goes on serving", async () => {
    const pid = await start();
    const done = FORBIDDEN.filter(([call, ...words]) => {
      const answer = injector.call(pid, call, ...words);
      return answer !== -EPERM && answer !== -ENOSYS;
    });
    expect(done).toEqual([]);
    expect(isAlive(pid)).toBe(true);
    await jaild.full();
    const next = await runPython(jaild, "python", { files: { "main.py": "print(1)" } });
    expect(next).toMatchObject({ out: "1\n", startedWarm: true });
  });

  it("cannot enter what a number of a process leads to", async () => {
    const pid = await start();
    const first = Number(injector.call(pid, "pidfd_open", 1, 0));
    expect(first).toBeGreaterThan(2);
    expect(injector.call(pid, "setns", first, NEWNS)).toBe(-EPERM);
    expect(injector.call(pid, "setns", first, 0)).toBe(-EINVAL);
    expect(injector.call(pid, "close", first)).toBe(0);
  });

  it("holds no descriptor but its line, its requests, its process numbers and jaild's groups", async () => {
    const pid = await start();
    const before = readdirSync(`/proc/${pid}/fd`);
    for (let i = 0; i < 3; i++) {
      await jaild.full();
      await runPython(jaild, "python", { files: { "main.py": "" } });
    }
    expect(readdirSync(`/proc/${pid}/fd`)).toEqual(before);
  });
});

describe("the user namespace of zygotes", () => {
  const start = async () => {
    jaild = await Jaild.start({ slots: 2, zygotes: ["python"] });
    await jaild.warm();
    await jaild.full();
  };
  const usersOf = (pid: number) =>
    /^Uid:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]?.split("\t") ?? [];

  it("is the keepers' user too, and nothing below the master is root of the host", async () => {
    await start();
    const own = [...jaild.keepers, ...jaild.zygotes];
    expect(own).toHaveLength(3);
    expect(namespaces("user", own).size).toBe(1);
    expect(namespaces("user", [process.pid, ...own]).size).toBe(2);
    expect(new Set(own.flatMap(usersOf))).toEqual(new Set([`${UID_BASE - 16}`]));
    for (const pid of descendants(jaild.pid))
      expect([pid, usersOf(pid)]).not.toEqual([pid, expect.arrayContaining(["0"])]);
    expect(readFileSync(`/proc/${own[0]}/uid_map`, "utf8").trim().split(/\s+/).map(Number)).toEqual([
      ...[0, UID_BASE - 16, 1],
      ...[UID_BASE, UID_BASE, 2],
    ]);
  });

  it("gives all of its capabilities no power over a file of root, not even by a descriptor of the host", async () => {
    await start();
    const directory = mkdtempSync(join(tmpdir(), "svc-host-"));
    const host = openSync(directory, "r");
    try {
      chmodSync(directory, 0o755);
      writeFileSync(join(directory, "secret"), "secret", { mode: 0o600 });
      writeFileSync(join(directory, "public"), "public", { mode: 0o644 });
      const attempts = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(work):
    try: return work() or 0
    except OSError as error: return error.errno
def mounted(*words): return libc.mount(*words) and ctypes.get_errno()
held = int([line for line in open("/proc/self/status") if line.startswith("CapEff")][0].split()[1], 16)
print(os.getuid(), held & (1 << 21) > 0 and held & 7 == 7, os.read(os.open("public", os.O_RDONLY, dir_fd=3), 9).decode(),
  attempt(lambda: os.open("secret", os.O_RDONLY, dir_fd=3) and 0), attempt(lambda: os.open("public", os.O_WRONLY, dir_fd=3) and 0),
  attempt(lambda: os.unlink("public", dir_fd=3)), attempt(lambda: os.chmod("secret", 0o644, dir_fd=3)),
  attempt(lambda: os.chown("secret", 0, 0, dir_fd=3)), attempt(lambda: os.mkdir("made", dir_fd=3)), mounted(b"none", b"/tmp", b"tmpfs", 0, None))`;
      for (const pid of [...jaild.zygotes, ...jaild.keepers]) {
        const enter = [
          "-U",
          "-t",
          `${pid}`,
          "--setuid",
          "0",
          "--setgid",
          "0",
          "/usr/bin/python3",
          "-c",
          attempts,
        ];
        const { stdout, stderr } = spawnSync("nsenter", enter, {
          stdio: ["ignore", "pipe", "pipe", host],
          encoding: "utf8",
        });
        expect([stdout, stderr]).toEqual([
          `0 True public ${EACCES} ${EACCES} ${EACCES} ${EPERM} ${EPERM} ${EACCES} ${EPERM}\n`,
          "",
        ]);
      }
      expect(readdirSync(directory).sort()).toEqual(["public", "secret"]);
    } finally {
      closeSync(host);
      rmSync(directory, { recursive: true });
    }
  });
});
