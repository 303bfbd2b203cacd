/**
 * Two programs of two tenants that run at the same time and try to meet: by files, shared memory, System V objects,
 * queues, sockets, user ids, locks, and what can be told or left about the files that both can read.
 */

import type { ExecResponse } from "@svc/contracts";
import { SLOWNESS, slow } from "@svc/test-kit/jail/slowness";
import { openStream, resultOf } from "@svc/test-kit/system/streams";
import { expect, test } from "vitest";
import { besiege, evidenceOf, PYTHON } from "../support/hostile.ts";
import { attacker, bystander, running } from "../support/running.ts";

/** Where each has a machine of its own, both have the same number in it. */
const HAVE_MACHINES = process.env.KVM_ENABLED === "true";

/** `wait(seconds)` says that the other one can come, and gives it time. */
const WAIT = `import sys, time
def wait(seconds):
    print("waiting", file=sys.stderr, flush=True)
    time.sleep(seconds * ${SLOWNESS})
`;

/**
 * Runs `first` for one tenant until it calls `wait`, then `second` for another meanwhile, and answers what both show.
 */
async function together<A, B>(first: string, second: string): Promise<[A, B]> {
  return besiege(async () => {
    const one = await openStream(
      running.tokenUrl,
      "/exec",
      { lang: "py", code: PYTHON + WAIT + first, run_timeout: slow(30_000) },
      { headers: { authorization: attacker.authorization() } },
    );
    await one.until(({ event }) => event === "stderr");
    let isOver = false;
    const events = one.all().finally(() => {
      isOver = true;
    });
    events.catch(() => undefined);
    const two = await bystander.exec({ lang: "py", code: PYTHON + second });
    expect(isOver, "the first program is still there").toBe(false);
    return [evidenceOf<A>(resultOf<ExecResponse>(await events)), evidenceOf<B>(two)];
  });
}

test("files, names and shared memory of one are not there for the other", async () => {
  const [, seen] = await together<null, unknown>(
    `from multiprocessing import shared_memory
for place in ("/tmp", "/dev/shm", "/mnt/data"):
    open(f"{place}/shared", "w").write("secret"); os.chmod(f"{place}/shared", 0o777)
memory = shared_memory.SharedMemory("meeting", create=True, size=4096)
wait(4); memory.unlink(); show(None)`,
    `from multiprocessing import shared_memory
show([[p for p in ("/tmp/shared", "/dev/shm/shared", "/mnt/data/shared", "/dev/shm/meeting") if os.path.exists(p)], attempt(lambda: shared_memory.SharedMemory("meeting"))])`,
  );
  expect(seen).toEqual([[], "ENOENT"]);
});

test("System V memory and semaphores; messages and POSIX queues do not exist", async () => {
  const [made, seen] = await together<string[], unknown>(
    `made = [call(29, 4711, 4096, 0o1666), call(64, 4711, 1, 0o1666), call(68, 4711, 0o1666)]
wait(4); show(made)`,
    `show([call(29, 4711, 4096, 0o600), call(64, 4711, 1, 0o600), call(68, 4711, 0o600), sorted({call(30, n, 0, 0) for n in range(64)}),
  [libc.shmctl(0, 14, ctypes.create_string_buffer(256)), libc.semctl(0, 0, 19, ctypes.create_string_buffer(256))], call(240, ctypes.c_char_p(b"meeting"), 0o102, 0o666, 0)])`,
  );
  expect(made).toEqual(["ok", "ok", "ENOSYS"]);
  expect(seen).toEqual(["ENOENT", "ENOENT", "ENOSYS", ["EINVAL"], [0, 0], "ENOSYS"]);
});

test("abstract sockets, and sockets in files", async () => {
  const [heard, seen] = await together<boolean, unknown>(
    `import socket
servers = []
for name in ("\\0meeting", "/tmp/meeting", "/dev/shm/meeting", "/mnt/data/meeting"):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(); s.settimeout(0.1); servers.append(s)
wait(4)
heard = False
for s in servers:
    try: s.accept(); heard = True
    except TimeoutError: pass
show(heard)`,
    `import socket
def connect(name): socket.socket(socket.AF_UNIX).connect(name)
show([attempt(lambda: connect(name)) for name in ("\\0meeting", "/tmp/meeting", "/dev/shm/meeting", "/mnt/data/meeting")] + [len(open("/proc/net/unix").readlines())])`,
  );
  expect(heard).toBe(false);
  expect(seen).toEqual(["ECONNREFUSED", "ENOENT", "ENOENT", "ENOENT", 1]);
});

test("they are different users of the machine, and no number reaches the other", async () => {
  const [one, two] = await together<[string, number], [string, string[], number]>(
    `wait(3); show([open("/proc/self/uid_map").read().split()[1], len([n for n in os.listdir("/proc") if n.isdigit()])])`,
    `seen = set()
for pid in range(1, 40000):
    if pid in (1, os.getpid()): continue
    seen.add(attempt(lambda: os.kill(pid, 0)))
show([open("/proc/self/uid_map").read().split()[1], sorted(seen), len([n for n in os.listdir("/proc") if n.isdigit()])])`,
  );
  expect(Number(one[0])).toBeGreaterThan(65_535);
  if (!HAVE_MACHINES) expect(two[0]).not.toBe(one[0]);
  expect(two[1]).toEqual(["ESRCH"]);
  expect([one[1], two[2]]).toEqual([2, 2]);
});

test("nobody is told which files of the image another one opens", async () => {
  const watched = [
    "/etc",
    "/etc/passwd",
    "/usr/bin",
    "/usr/bin/jq",
    "/usr/lib/python3",
    "/dev/null",
    "/proc/cpuinfo",
    "/",
  ];
  const [told] = await together<{ events: string[]; signals: number; asked: string[] }, null>(
    `import signal, struct
paths = ${JSON.stringify(watched)}
fd = libc.inotify_init1(0o4000)
names = {libc.inotify_add_watch(fd, path.encode(), 0xfff): path for path in paths} if fd >= 0 else {}
signals, asked = [], set()
signal.signal(signal.SIGIO, lambda *_: signals.append(1))
directories = [os.open(path, os.O_RDONLY) for path in paths if os.path.isdir(path)]
for directory in directories: asked.add(call(72, directory, 1026, 0x8000003f))
if fd >= 0:
    try: os.read(fd, 1 << 16)
    except BlockingIOError: pass
signals.clear()
wait(4)
data, at, events = b"", 0, []
if fd >= 0:
    try: data = os.read(fd, 1 << 16)
    except BlockingIOError: pass
while at < len(data):
    watch, _, _, size = struct.unpack_from("iIII", data, at)
    events.append(names.get(watch, "?") + " " + data[at + 16:at + 16 + size].rstrip(b"\\0").decode())
    at += 16 + size
show({"events": sorted(set(events)), "signals": len(signals), "asked": sorted(asked)})`,
    `import subprocess
for _ in range(3): subprocess.run(["/usr/bin/jq", "--version"], capture_output=True)
open("/etc/passwd").read(); os.listdir("/usr/lib/python3"); open("/dev/null", "w").write("x"); open("/proc/cpuinfo").read()
show(None)`,
  );
  expect(told).toMatchObject({ events: [], signals: 0 });
});

const SHARED = `import fcntl, struct
directories = ["/", "/usr", "/usr/bin", "/dev", "/run", "/proc/sys"]
files = ["/etc/passwd", "/bin/bash", "/lib64/ld-linux-x86-64.so.2", "/dev/null", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/proc/locks"]
def whole(path): fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
def part(path): fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_RDLCK, 0, 4711, 1, 0))
def others(path):
    lock = fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
    return struct.unpack("hhqqi", lock)[0] != fcntl.F_UNLCK
`;

test("locks on what both can open: neither sees the other's, held or listed", async () => {
  const [held, seen] = await together<string[], unknown>(
    `${SHARED}
kept = [os.open(path, os.O_RDONLY) for path in directories + files]
results = [attempt(lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)) for fd in kept]
ranges = struct.pack("hhqqi", fcntl.F_RDLCK, 0, 4711, 1, 0)
results += [attempt(lambda: fcntl.fcntl(fd, fcntl.F_SETLK, ranges)) for fd in kept[len(directories):]]
wait(4); show(sorted(set(results)))`,
    `${SHARED}
show([[p for p in directories + files if attempt(lambda: whole(p)) != "ok"], [p for p in files if others(p)], open("/proc/locks").read()])`,
  );
  expect(held).toEqual(["ok"]);
  expect(seen).toEqual([[], [], ""]);
});

test("nobody is told whether another one has read a file of the image, nor throws it out of memory", async () => {
  const spy = `import mmap
file = os.path.dirname(os.__file__) + "/wave.py"
fd = os.open(file, os.O_RDONLY)
area = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
def asked():
    vector = (ctypes.c_ubyte * 1)()
    call(27, address, 4096, vector)
    return [attempt(lambda: os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)), vector[0] & 1, call(451, fd, 0, 0, 0),
      attempt(lambda: os.open(file, os.O_RDONLY | os.O_DIRECT)), call(28, address, 4096, 21), call(28, address, 4096, 20)]
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
`;
  const [one, two] = await together<[unknown, unknown], [number, unknown]>(
    `${spy}
before = asked(); wait(4); show([before, asked()])`,
    `${spy}
show([len(open(file).read()), asked()])`,
  );
  const nothing = ["ENOTSUP", 1, "ENOSYS", "EINVAL", "EINVAL", "EINVAL"];
  expect([one, two[1]]).toEqual([[nothing, nothing], nothing]);
  expect(two[0]).toBeGreaterThan(1000);
});

test("nothing stays in a file of the image, and none of its flushes reaches the disk", async () => {
  const [made, seen] = await together<unknown, unknown>(
    `import fcntl
fd = os.open("/etc/passwd", os.O_RDONLY)
hint = ctypes.create_string_buffer(b"\\3" + bytes(7))
show_later = [sorted({call(72, fd, command, hint) for command in range(1035, 1041)}), sorted({call(72, fd, 1 << 32 | command, hint) for command in range(1035, 1041)})]
wait(4); show(show_later)`,
    // A descriptor that is not open shows that the kernel is not asked.
    `import fcntl
fd = os.open("/etc/passwd", os.O_RDONLY)
hint = ctypes.create_string_buffer(8)
show([sorted({call(72, fd, command, hint) for command in (1035, 1037, 1039)}), hint.raw.hex(), [call(number, -1) for number in (74, 75, 306)], call(162), call(277, -1, 0, 0, 0)])`,
  );
  expect(made).toEqual([["EINVAL"], ["EINVAL"]]);
  expect(seen).toEqual([["EINVAL"], "0".repeat(16), ["ok", "ok", "ok"], "ok", "ENOSYS"]);
});

test("counterpart: inside one run locks, databases and flushes work as everywhere", async () => {
  const [, seen] = await together<null, unknown>(
    "wait(2); show(None)",
    `${SHARED}
import sqlite3
open("own", "w").close()
kept = [os.open(path, os.O_RDONLY) for path in ("own", "/etc/passwd")]
for fd in kept: fcntl.flock(fd, fcntl.LOCK_EX)
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, json.dumps([attempt(lambda: whole(p)) for p in ("own", "/etc/passwd")]).encode()); os._exit(0)
os.wait()
one, two = (sqlite3.connect("d.sqlite", timeout=0, isolation_level=None) for _ in range(2))
one.execute("pragma journal_mode=wal"); one.execute("create table t(a)"); one.execute("begin immediate"); one.execute("insert into t values (1)")
try: two.execute("begin immediate"); busy = "not locked"
except sqlite3.OperationalError as error: busy = str(error)
one.execute("commit")
with open("synced", "w") as file:
    file.write("text"); file.flush(); os.fsync(file.fileno()); os.fdatasync(file.fileno())
show([json.loads(os.read(read, 4096)), busy, two.execute("select count(*) from t").fetchone()[0], open("synced").read()])`,
  );
  expect(seen).toEqual([["EAGAIN", "EAGAIN"], "database is locked", 1, "text"]);
});
