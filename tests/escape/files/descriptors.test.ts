/** The descriptors that a program begins with: which there are, and what it can do to the service through them. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";
import { running } from "../support/running.ts";

test.each([
  ["py", `import os; print(sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1])`],
  ["bash", `echo "[$(ls /proc/self/fd | head -n -1 | paste -sd, | sed 's/,/, /g')]"`],
])("%s: the table holds 0, 1 and 2", async (lang, code) => {
  expect((await hostile({ lang, code })).stdout).toBe("[0, 1, 2]\n");
});

test("a table of all descriptors up to the limit holds nothing else", async () => {
  expect(
    await evidence(
      `show([[fd for fd in range(4096) if call(72, fd, 1) == "ok"], [os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in (0, 1, 2)]])`,
    ),
  ).toEqual([
    [0, 1, 2],
    ["/dev/null", "pipe", "pipe"],
  ]);
});

test("the streams opened again are the program's own: resized, set non-blocking, closed, the output is whole", async () => {
  const answer = await hostile({
    lang: "py",
    code: `import fcntl, json, os, time
results = []
for path in ("/proc/self/fd/1", "/dev/stdout"):
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    fcntl.fcntl(fd, 1031, 4096)
    results.append(fcntl.fcntl(fd, 1032))
    os.close(fd)
for flags in (os.O_NONBLOCK | os.O_DIRECT, os.O_NONBLOCK):
    try: fcntl.fcntl(1, fcntl.F_SETFL, flags); results.append("set")
    except OSError as error: results.append(error.errno)
for action in (lambda: fcntl.fcntl(1, 1031, 1 << 30), lambda: os.ftruncate(1, 0), lambda: os.lseek(1, 0, 0), lambda: os.fchmod(1, 0), lambda: os.fchown(1, 0, 0), lambda: fcntl.flock(1, fcntl.LOCK_EX)):
    try: action(); results.append("ok")
    except OSError as error: results.append(error.errno)
data = memoryview(("x" * 99 + "\\n").encode() * 600)
while data:
    try: data = data[os.write(1, data):]
    except BlockingIOError: time.sleep(0.001)
os.write(2, json.dumps(results).encode())
os.close(0); os.close(1); os.close(2)`,
  });
  expect(answer.stdout).toBe(`${"x".repeat(99)}\n`.repeat(600));
  const [first, second, packets, nonBlocking, grown, cut, seek] = JSON.parse(answer.stderr) as unknown[];
  expect([packets, nonBlocking]).toEqual([22, "set"]);
  expect([first, second]).toEqual([4096, 4096]);
  expect([cut, seek]).toEqual([22, 29]);
  expect(grown).toBe(1);
});

test("the reading end of the own output gives nothing that the service wrote", async () => {
  const answer = await hostile({
    lang: "py",
    code: `import os, select
os.write(1, b"one\\n")
fd = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
try: stolen = os.read(fd, 100)
except BlockingIOError: stolen = b""
os.write(1, b"two\\n")
os.write(2, repr(stolen in (b"", b"one\\n")).encode())`,
  });
  expect(answer.stderr).toBe("True");
  expect(["one\ntwo\n", "two\n"]).toContain(answer.stdout);
});

test("standard input cannot be written, grown or sealed away, and is the program's own copy", async () => {
  expect(
    await evidence(
      `
import fcntl
show([attempt(lambda: os.write(0, b"x")), attempt(lambda: os.open("/proc/self/fd/0", os.O_WRONLY)), attempt(lambda: os.open("/dev/stdin", os.O_RDWR)), attempt(lambda: os.ftruncate(0, 0)),
  attempt(lambda: os.fchmod(0, 0o666)), attempt(lambda: fcntl.fcntl(0, 1033, 15)), os.read(0, 100).decode()])`,
      { stdin: "the input" },
    ),
  ).toEqual([
    "EBADF",
    "EACCES",
    "EACCES",
    "EINVAL",
    expect.stringMatching(/^E/),
    expect.stringMatching(/^E/),
    "the input",
  ]);
});

test("signals and leases, on the streams and on files of the image, reach nobody", async () => {
  const answer = await hostile({
    lang: "py",
    code: `import fcntl, os, signal
results = []
signal.signal(signal.SIGIO, signal.SIG_IGN)
for fd in (0, 1, 2):
    for owner in (1, -1, 2 ** 22 - 1):
        try: fcntl.fcntl(fd, fcntl.F_SETOWN, owner); fcntl.fcntl(fd, 10, 9); fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC)
        except OSError: pass
    try: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK); results.append("lease")
    except OSError: pass
for path in ("/etc/passwd", "/usr/bin/python3", "/dev/null", "/proc/cpuinfo"):
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
        try: fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, kind); results.append(path)
        except OSError: pass
for _ in range(100): os.write(2, b"")
print(results, flush=True)`,
  });
  expect(answer).toMatchObject({ stdout: "[]\n", code: 0 });
});

test("a crash leaves no core, not in the workspace and not on the machine", async () => {
  const pattern = readFileSync("/proc/sys/kernel/core_pattern", "utf8");
  const answer = await hostile({
    lang: "py",
    code: `import ctypes, os, resource
try: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
except (ValueError, OSError): pass
for path in ("/mnt/data", "/tmp", "/"):
    os.chdir(path)
    pid = os.fork()
    if pid == 0: ctypes.string_at(0)
    os.waitpid(pid, 0)
print([n for d in ("/mnt/data", "/tmp", "/dev/shm") for n in os.listdir(d)], flush=True)
os.chdir("/mnt/data")
os.abort()`,
  });
  expect(answer).toMatchObject({ stdout: "['main.py']\n", signal: "SIGABRT", status: "SG", files: [] });
  expect(readFileSync("/proc/sys/kernel/core_pattern", "utf8")).toBe(pattern);
  const cores = execFileSync("find", [running.instance.dataDir, "-name", "core*", "-type", "f"]).toString();
  expect(cores).toBe("");
  expect(readdirSync("/").filter((name) => name.startsWith("core"))).toEqual([]);
});
