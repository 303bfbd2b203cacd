/**
 * System calls that exist, with the arguments that attacks need: personality, memfd, filters, prctl tricks, ioctl,
 * devices, scheduling, limits, identities, locks on memory. Each beside the use that programs make of it.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";

test("personality: only what changes nothing", async () => {
  const [allowed, refused] = await evidence<[string[], string[]]>(`
show([[call(135, p) for p in (0xffffffff, 0, 0x40000)],
  sorted({call(135, p) for p in (1, 2, 3, 6, 8, 0x10, 0x10000, 0x100000, 0x200000, 0x400000, 0x800000, 0x1000000, 0x8000000, 1 << 32 | 8, 0x40008, 0xfffffffe)})])`);
  expect(allowed).toEqual(["ok", "ok", "ok"]);
  expect(refused).toEqual(["EPERM"]);
});

test("a program from memory is as confined as one from a file", async () => {
  expect(
    await evidence(`
import subprocess
fd = os.memfd_create("cat")
os.write(fd, open("/bin/cat", "rb").read())
out = subprocess.run([f"/proc/self/fd/{fd}", "/proc/self/status"], pass_fds=[fd], capture_output=True, text=True).stdout
fields = dict(line.split(":\\t", 1) for line in out.splitlines() if ":\\t" in line)
show([fields["CapEff"], fields["CapBnd"], fields["NoNewPrivs"], fields["Seccomp"], fields["Uid"].split()[0],
  call(319, ctypes.c_char_p(b"m"), 4), call(319, ctypes.c_char_p(b"m"), 1 << 32 | 4), call(9, 0, 1 << 21, 3, 0x40022, (1 << 64) - 1, 0)])`),
  ).toEqual(["0".repeat(16), "0".repeat(16), "1", "2", "1000", "EINVAL", "EINVAL", "ENOMEM"]);
});

test("no filter can be added, none removed, whatever way", async () => {
  expect(
    await evidence(`
program = ctypes.create_string_buffer(16)
show([call(157, 22, 1, 0), call(157, 22, 2, program), call(157, 1 << 32 | 22, 2, program), call(317, 0, 0, 0), call(317, 1, 0, program),
  call(317, 1, 8, program), call(317, 2, 0, program), call(317, 3, 0, program), call(157, 21), open("/proc/self/status").read().split("Seccomp:\\t")[1][0]])`),
  ).toEqual([...Array(3).fill("EPERM"), ...Array(5).fill("ENOSYS"), "ok", "2"]);
});

test("prctl gives nothing that opens a lock or another's memory", async () => {
  const options = {
    SET_MM: 35,
    CAPBSET_DROP: 24,
    SET_SECUREBITS: 28,
    SET_SECCOMP: 22,
    SET_SYSCALL_USER_DISPATCH: 59,
    SET_PTRACER: 0x59616d61,
    SET_MCE_KILL: 33,
    SET_TSC: 26,
    SET_KEEPCAPS: 8,
    SET_IO_FLUSHER: 57,
    SCHED_CORE: 62,
    SET_MDWE: 65,
    SET_UNALIGN: 6,
    SET_ENDIAN: 20,
    TASK_PERF_EVENTS_DISABLE: 31,
    SET_MEMORY_MERGE: 67,
    PAC_RESET_KEYS: 54,
    SET_TAGGED_ADDR_CTRL: 55,
  };
  const seen = await evidence<Record<string, string[]>>(`
show({name: sorted({call(157, high << 32 | option, a, b, 0, 0) for high in (0, 1) for a in (0, 1, os.getpid()) for b in (0, 1)})
  for name, option in json.loads('${JSON.stringify(options)}').items()})`);
  const open = Object.entries(seen).filter(
    ([, results]) => !results.every((result) => ["EPERM", "EINVAL"].includes(result)),
  );
  expect(open).toEqual([]);
});

test("capabilities cannot be raised: not ambient, not inheritable, not by a file", async () => {
  expect(
    await evidence(`
import struct, subprocess
header = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0))
def capset(e, p, i): return call(126, header, ctypes.create_string_buffer(struct.pack("<6I", e, p, i, 0, 0, 0)))
show([capset(0, 0, 0), capset(1, 1, 0), capset(0, 1, 0), capset(0, 0, 1), capset(0xffffffff, 0xffffffff, 0xffffffff),
  sorted({call(157, 47, 2, capability, 0, 0) for capability in range(41)}),
  attempt(lambda: open("f", "w").close() or os.setxattr("f", "security.capability", struct.pack("<5I", 0x2000001, 1 << 21, 0, 0, 0))),
  attempt(lambda: os.setxattr("f", "trusted.x", b""))])`),
  ).toEqual(["ok", "EPERM", "EPERM", "EPERM", "EPERM", ["EPERM"], "EPERM", "EPERM"]);
});

test("ioctl: no injection into a terminal, no flags of files, no virtual machine, no block device", async () => {
  const requests = {
    TIOCSTI: 0x5412,
    TIOCLINUX: 0x541c,
    TIOCSCTTY: 0x540e,
    TIOCCONS: 0x541d,
    TIOCSETD: 0x5423,
    FS_IOC_SETFLAGS: 0x40086602,
    FS_IOC_GETFLAGS: 0x80086601,
    FS_IOC_FSSETXATTR: 0x401c5820,
    FIFREEZE: 0xc0045877,
    FITRIM: 0xc0185879,
    KVM_CREATE_VM: 0xae01,
    BLKDISCARD: 0x1277,
    LOOP_SET_FD: 0x4c00,
    FS_IOC_ENABLE_VERITY: 0x40806685,
    FIDEDUPERANGE: 0xc0189436,
    BTRFS_SUBVOL: 0x5000940e,
    SG_IO: 0x2285,
    TUNSETIFF: 0x400454ca,
    UFFDIO_API: 0xc018aa3f,
    PIDFD_GET_MNT: 0xff03,
    SECCOMP_RECV: 0xc0502100,
    FS_IOC_GETUUID: 0x80111500,
    PAGEMAP_SCAN: 0xc0606610,
  };
  const seen = await evidence<Record<string, string[]>>(`
buffer = ctypes.create_string_buffer(4096)
file = os.open("/mnt/data/f", os.O_RDWR | os.O_CREAT)
fds = [0, 1, 2, file, os.open("/", os.O_RDONLY), os.open("/dev/null", os.O_RDWR), os.pidfd_open(os.getpid()), os.open("/proc/self/pagemap", os.O_RDONLY)]
show({name: sorted({call(16, fd, high << 32 | request, buffer) for fd in fds for high in (0, 1, 0xffffffff)})
  for name, request in json.loads('${JSON.stringify(requests)}').items()})`);
  for (const [name, results] of Object.entries(seen)) {
    expect([name, results]).toEqual([
      name,
      [name === "TIOCSTI" || name === "TIOCLINUX" ? "EPERM" : "ENOTTY"],
    ]);
  }
});

test("the scheduler: no real-time class, no better priority, no deadline, no reservation of a processor", async () => {
  expect(
    await evidence(`
import struct
one = ctypes.byref(ctypes.c_int(1))
attr = lambda policy: ctypes.create_string_buffer(struct.pack("<IIQiIQQQ", 48, policy, 0, 0, 1, 10**6, 10**7, 10**7))
show([sorted({call(144, pid, policy | reset, one) for pid in (0, os.getpid(), 1) for policy in (1, 2, 6, 7) for reset in (0, 0x40000000)}),
  sorted({call(314, 0, attr(policy), 0) for policy in (0, 1, 2, 6)}), attempt(lambda: os.nice(-1)),
  attempt(lambda: os.setpriority(os.PRIO_PROCESS, 0, -20)), attempt(lambda: os.setpriority(os.PRIO_USER, 0, -20)),
  call(251, 1, 0, 1 << 13), call(251, 1, 0, 1 << 13 | 4), attempt(lambda: os.nice(5)), call(144, 0, 3, ctypes.byref(ctypes.c_int(0)))])`),
  ).toEqual([
    ["EPERM"],
    ["ENOSYS"],
    expect.stringMatching(/^E(ACCES|PERM)$/),
    "EACCES",
    expect.stringMatching(/^E(ACCES|PERM)$/),
    "ENOSYS",
    "ENOSYS",
    "ok",
    "ok",
  ]);
});

test("limits can be lowered and not raised, and pid 1's not touched", async () => {
  expect(
    await evidence(`
import resource
names = [n for n in dir(resource) if n.startswith("RLIMIT_")]
def raised(limit):
    soft, hard = resource.getrlimit(limit)
    if hard == resource.RLIM_INFINITY: return None
    for value in (hard + 1, resource.RLIM_INFINITY):
        try: resource.setrlimit(limit, (soft, value))
        except (ValueError, OSError): continue
        if resource.getrlimit(limit)[1] > hard: return "raised"
show([[n for n in names if raised(getattr(resource, n))], sorted({call(302, 1, n, 0, 0) for n in range(16)}),
  sorted({call(302, 1 << 32 | 1, n, 0, 0) for n in range(16)}), attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))),
  resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NOFILE)])`),
  ).toEqual([[], ["EPERM"], ["EPERM"], "ok", [1, 1], [64, 64]]);
});

test("identities: none but the program's own", async () => {
  expect(
    await evidence(`
ids = (0, 1, 65534, 200000, 4294967294)
sets = [lambda i: os.setuid(i), lambda i: os.setgid(i), lambda i: os.setreuid(i, i), lambda i: os.setresuid(i, i, i), lambda i: os.setregid(i, i),
  lambda i: os.setresgid(i, i, i), lambda i: os.setgroups([i]), lambda i: os.chown("/mnt/data", i, -1), lambda i: os.chown("/mnt/data", -1, i)]
results = sorted({attempt(lambda: action(i)) for action in sets for i in ids})
libc.syscall(122, 0); libc.syscall(123, 0)
show([results, os.getresuid(), os.getresgid(), libc.syscall(122, -1), os.getgroups(), attempt(lambda: os.setuid(1000))])`),
  ).toEqual([
    expect.arrayContaining(["EINVAL", "EPERM"]),
    [1000, 1000, 1000],
    [1000, 1000, 1000],
    1000,
    [],
    "ok",
  ]);
});

test("memory cannot be locked beyond the limit, and no page zero be mapped", async () => {
  const minimum = Number(readFileSync("/proc/sys/vm/mmap_min_addr", "utf8"));
  expect(minimum).toBeGreaterThan(0);
  const [locked, zero, all] = await evidence<[string, string[], string]>(`
libc.mmap.restype = ctypes.c_void_p
area = libc.mmap(None, 64 << 20, 3, 0x22, -1, 0)
show([call(149, area, 64 << 20), sorted({call(9, address, 4096, 7, 0x32, (1 << 64) - 1, 0) for address in range(0, ${minimum}, 4096)}), call(151, 3)])`);
  expect(["ENOMEM", "EPERM", "EAGAIN"]).toContain(locked);
  expect(zero.filter((result) => !["EPERM", "EACCES"].includes(result))).toEqual([]);
  expect(["ENOMEM", "EPERM", "EAGAIN"]).toContain(all);
});

test("signals reach the program's own processes only; pid 1 survives all of them", async () => {
  const answer = await hostile({
    lang: "py",
    code: `import os, signal
for number in range(1, 65):
    try: os.kill(1, number)
    except OSError: pass
for number in (9, 15, 19, 6, 11):
    signal.pidfd_send_signal(os.pidfd_open(1), number)
for pid in range(2, 4000):
    if pid != os.getpid():
        try: os.kill(pid, 0); print("sees", pid)
        except ProcessLookupError: pass
signal.signal(15, signal.SIG_IGN)
ready, tell = os.pipe()
child = os.fork()
if child == 0: signal.signal(15, signal.SIG_DFL); os.write(tell, b"x"); signal.pause()
os.read(ready, 1)
os.kill(-1, 15)
print("killed", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
print("alive", len([n for n in os.listdir("/proc") if n.isdigit()]))`,
  });
  expect(answer).toMatchObject({ stdout: "killed -15\nalive 2\n", code: 0, signal: null });
});
