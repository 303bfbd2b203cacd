/**
 * Programs that collect things the kernel makes for them. Each kind has a bound that the program meets as an ordinary
 * error, under its own name and at its own number; nobody else's share gets smaller.
 */
import { describe, expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";

interface Collected {
  count: number;
  error: string;
}

/** `make(n)` makes the nth object or raises OSError; prints how many there were and what the last answer was. */
const collect = (body: string) => `
import ctypes, errno, fcntl, json, mmap, os, resource, select, signal, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def must(result):
    if result < 0: raise OSError(ctypes.get_errno(), "refused")
    return result
kept = []
${body}
count = 0
try:
    while count < 10_000_000:
        make(count); count += 1
    error = "none"
except OSError as refused:
    error = errno.errorcode[refused.errno]
`;
const REPORT = 'os.write(1, json.dumps({"count": count, "error": error}).encode())';

const collected = async (body: string): Promise<Collected> => {
  const answer = await hostile({ lang: "py", code: collect(body) + REPORT });
  expect(answer).toMatchObject({ status: null, code: 0, stderr: "" });
  return JSON.parse(answer.stdout) as Collected;
};

/** The same in eight processes at once: what all of them have together. */
const collectedByEight = async (body: string): Promise<Collected> => {
  const code = `${collect(body).replace("\nkept = []", "\nread, write = os.pipe()\nfor _ in range(7):\n    if os.fork() == 0: break\nkept = []")}
os.write(write, struct.pack("i4s", count, error[:4].encode())); os.close(write)
if os.getpid() != 2: time.sleep(60)
parts = [struct.unpack("i4s", os.read(read, 8)) for _ in range(8)]
count, error = sum(part[0] for part in parts), ",".join(sorted({part[1].decode() for part in parts}))
${REPORT}`;
  const answer = await hostile({ lang: "py", code });
  expect(answer).toMatchObject({ status: null, code: 0, stderr: "" });
  return JSON.parse(answer.stdout) as Collected;
};

const DESCRIPTORS = 2048;
const SIGNALS = 4096;

describe("descriptors", () => {
  test("of one process are as many as promised, and no more", async () => {
    expect(await collected("def make(n): os.dup(0)")).toEqual({ count: DESCRIPTORS - 3, error: "EMFILE" });
  });

  test.each([
    ["event counters", "def make(n): os.eventfd(0)"],
    ["timers with descriptors", "def make(n): must(libc.timerfd_create(1, 0))"],
    ["memory files", "def make(n): os.memfd_create('x')"],
    ["processes by descriptor", "def make(n): os.pidfd_open(os.getpid())"],
    ["poll sets", "def make(n): kept.append(select.epoll())"],
    ["signal receivers", "mask = (ctypes.c_ulong * 16)()\ndef make(n): must(libc.signalfd(-1, mask, 0))"],
    ["sockets", "def make(n): kept.append(socket.socket(socket.AF_UNIX))"],
    ["directories", "def make(n): os.open('/', os.O_RDONLY)"],
  ])("that are %s have the same bound", async (_name, body) => {
    expect(await collected(body)).toEqual({ count: DESCRIPTORS - 3, error: "EMFILE" });
  });

  test("can be allowed fewer by the program, never more", async () => {
    const code = `
import resource
for wanted in ((4096, 4096), (2048, 4096), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)):
    try: resource.setrlimit(resource.RLIMIT_NOFILE, wanted); print("raised")
    except (OSError, ValueError) as error: print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); print(resource.getrlimit(resource.RLIMIT_NOFILE))`;
    const refused = "ValueError not allowed to raise maximum limit\n";
    expect(await hostile({ lang: "py", code })).toMatchObject({ stdout: `${refused.repeat(3)}(64, 64)\n` });
  });

  test("in a hundred processes, each with all that it may have, disturb nobody", async () => {
    const code = `
import os, time
read, write = os.pipe()
for _ in range(100):
    if os.fork() == 0:
        count = 0
        try:
            while True: os.open("/etc/passwd", os.O_RDONLY); count += 1
        except OSError: os.write(write, b"%5d" % count)
        time.sleep(60)
print(sum(int(os.read(read, 5)) for _ in range(100)))`;
    const answer = await hostile({ lang: "py", code });
    expect(answer).toMatchObject({ status: null, code: 0 });
    expect(Number(answer.stdout)).toBe(100 * (DESCRIPTORS - 5));
  });

  test("on their way through sockets are counted too", async () => {
    const body = `left, right = socket.socketpair()
file = os.open("/etc/passwd", os.O_RDONLY)
kept = [socket.socketpair() for _ in range(500)]
def make(n):
    end = kept[n // 4][0]
    end.setblocking(False)
    end.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("100i", *[file] * 100))])`;
    const { count, error } = await collected(body);
    expect(error).toBe("ETOOMANYREFS");
    expect(count * 100).toBeLessThanOrEqual(DESCRIPTORS + 200);
  });

  test("of poll sets cannot be nested without end", async () => {
    const body = `kept = [select.epoll()]
def make(n):
    outer = select.epoll(); outer.register(kept[-1]); kept.append(outer)`;
    const { count, error } = await collected(body);
    expect([error, count < 10]).toEqual(["ELOOP", true]);
  });
});

describe("bounds that all processes of a run share", () => {
  test("timers", async () => {
    const body = `libc.timer_create.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
slot = ctypes.c_long()
def make(n): must(libc.timer_create(1, None, ctypes.byref(slot)))`;
    const { count, error } = await collectedByEight(body);
    expect([error, count <= SIGNALS, count > SIGNALS - 100]).toEqual(["EAGA", true, true]);
  });

  test("signals in queues", async () => {
    const body = `signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
libc.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
def make(n): must(libc.sigqueue(os.getpid(), signal.SIGRTMIN, None))`;
    const { count, error } = await collectedByEight(body);
    expect([error, count <= SIGNALS, count > SIGNALS - 100]).toEqual(["EAGA", true, true]);
  });

  test("segments of shared memory", async () => {
    const { count, error } = await collected("def make(n): must(libc.shmget(0, 4096, 0o1600))");
    expect([error, count]).toEqual(["ENOSPC", 4096]);
  });
});

describe("bounds of one process", () => {
  test("mappings", async () => {
    const body = `libc.mmap.restype = ctypes.c_long
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
def make(n): must(libc.mmap(None, 4096, n % 2, 0x22, -1, 0))`;
    const { count, error } = await collected(body);
    expect([error, count > 10_000]).toEqual(["ENOMEM", true]);
  });

  test("locked memory", async () => {
    const body = `area = mmap.mmap(-1, 64 << 20)
libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
at = ctypes.addressof(ctypes.c_char.from_buffer(area))
def make(n): must(libc.mlock(at + n * 4096, 4096))`;
    expect(await collected(body)).toEqual({ count: 16, error: "ENOMEM" });
  });

  test("processor classes and priorities above the ordinary", async () => {
    const code = `
import os
def attempt(call):
    try: call(); return "done"
    except OSError as error: return os.strerror(error.errno)
print(attempt(lambda: os.nice(-1)), attempt(lambda: os.setpriority(os.PRIO_PROCESS, 0, -20)), attempt(lambda: os.nice(19)), sep=", ")
for policy in (os.SCHED_FIFO, os.SCHED_RR): print(attempt(lambda: os.sched_setscheduler(0, policy, os.sched_param(1))))`;
    const { stdout } = await hostile({ lang: "py", code });
    expect(stdout).toBe(
      "Operation not permitted, Permission denied, done\nOperation not permitted\nOperation not permitted\n",
    );
  });
});
