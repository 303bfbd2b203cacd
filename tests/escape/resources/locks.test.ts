/**
 * Locks on files, which are kernel memory that no control group counts: programs that collect them in every way end as
 * out of memory, and kinds that nobody could count do not exist. Programs that lock what they need notice nothing.
 */
import { describe, expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";

const OUT_OF_MEMORY = { status: "ML", code: 137, signal: "SIGKILL", message: "Out of memory" };
const python = (body: string) => ({ lang: "py", code: `import fcntl, os, time\n${body}` });

describe("programs that collect locks are ended:", () => {
  test.each([
    [
      "on ranges of one file",
      "file = open('f', 'wb')\nfor at in range(1 << 40, 0, -2): fcntl.lockf(file, fcntl.LOCK_EX, 1, at)",
    ],
    [
      "on ranges of many files, in two processes",
      `os.fork()
files = [open(f"/tmp/{os.getpid()}-{n}", "wb") for n in range(1000)]
for at in range(1 << 30):
    for file in files: fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * at)`,
    ],
    [
      "a few in each of many processes, which sleep on them",
      `for _ in range(200):
    if os.fork() == 0:
        files = [open(f"/dev/shm/{os.getpid()}-{n}", "wb") for n in range(20)]
        for at in range(50):
            for file in files: fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * at)
        time.sleep(60)
while True: pass`,
    ],
    [
      "to read, on one file of the image, in many processes",
      `for _ in range(20):
    if os.fork() == 0:
        file = open("/etc/passwd", "rb")
        for at in range(1 << 40, 0, -2): fcntl.lockf(file, fcntl.LOCK_SH, 1, at)
time.sleep(60)`,
    ],
    [
      "in threads, on files in memory",
      `import threading
def collect():
    file = os.memfd_create("x")
    for at in range(1 << 40, 0, -2): fcntl.lockf(file, fcntl.LOCK_EX, 1, at)
for _ in range(50): threading.Thread(target=collect).start()`,
    ],
    [
      "on whole files that are open more than once",
      `for _ in range(20):
    if os.fork() == 0:
        files = [open("/etc/passwd", "rb") for _ in range(300)]
        for file in files: fcntl.flock(file, fcntl.LOCK_SH)
        while True: pass
time.sleep(60)`,
    ],
    [
      "while others wait for them",
      `mine = open("f", "wb")
fcntl.lockf(mine, fcntl.LOCK_EX)
for _ in range(40):
    if os.fork() == 0:
        file = os.memfd_create("x")
        for at in range(200): fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * at)
        fcntl.lockf(open("f", "wb"), fcntl.LOCK_EX)
while True: pass`,
    ],
  ])("%s", async (_name, body) => {
    expect(await hostile(python(body))).toMatchObject(OUT_OF_MEMORY);
  });
});

test("kinds of locks that nobody can count do not exist", async () => {
  const CLONE_FILES = 0x400;
  const FIRST = 36; // F_OFD_GETLK
  const code = `import fcntl, os, struct
file = os.open("f", os.O_RDWR | os.O_CREAT)
lock = ctypes.create_string_buffer(struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
show({
  "of open files": [call(72, file, high << 32 | ${FIRST} + n, ctypes.addressof(lock)) for n in range(3) for high in (0, 1)],
  "leases": [call(72, file, 1024, kind) for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK)],
  "of a file table that outlives its process": [call(56, high << 32 | ${CLONE_FILES} | 17, 0, 0, 0, 0) for high in (0, 1)],
  "not known yet": [call(72, file, 1024 + n, 0) for n in (15, 16, 17, 100)],
})`;
  const refused = (count: number) => Array.from({ length: count }, () => "EINVAL");
  expect(await evidence(code)).toEqual({
    "of open files": refused(6),
    leases: refused(2),
    "of a file table that outlives its process": refused(2),
    "not known yet": refused(4),
  });
});

describe("programs that lock what they need go on:", () => {
  test("a thousand ranges, held through a second of work", async () => {
    const body = `file = open("f", "wb")
for at in range(1000): fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * at)
until = time.process_time() + 1
while time.process_time() < until: pass
if os.fork() == 0:
    taken = 0
    for at in range(2000):
        try: fcntl.lockf(open("f", "wb"), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
        except BlockingIOError: taken += 1
    print(taken, flush=True)
os.wait() if os.getpid() == 2 else os._exit(0)`;
    expect(await hostile(python(body))).toMatchObject({
      status: null,
      code: 0,
      stdout: "1000\n",
      stderr: "",
    });
  });

  test.each(["wal", "delete", "truncate", "persist"])(
    "a database with journal_mode=%s, in four processes",
    async (mode) => {
      const body = `import sqlite3
def connect(): return sqlite3.connect("d.db", timeout=15, isolation_level=None)
first = connect()
print(*first.execute("pragma journal_mode=${mode}").fetchone())
first.execute("create table t(x)")
first.close()
for _ in range(4):
    if os.fork() == 0:
        database = connect()
        for n in range(100):
            database.execute("begin immediate"); database.execute("insert into t values (?)", (n,)); database.execute("commit")
        os._exit(0)
print(*[os.wait()[1] for _ in range(4)], *connect().execute("select count(*), sum(x) from t").fetchone())`;
      const stdout = `${mode}\n0 0 0 0 400 19800\n`;
      expect(await hostile(python(body))).toMatchObject({ status: null, stdout, stderr: "" });
    },
  );

  test("a lock that is waited for, by processes that take turns", async () => {
    const code = `seq 30 | xargs -P 6 -I{} flock lock sh -c 'echo {} >> all'; wc -l < all`;
    expect(await hostile({ lang: "bash", code })).toMatchObject({ status: null, stdout: "30\n" });
  });
});
