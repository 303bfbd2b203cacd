/** Programs that fill their file systems: by bytes, files, holes, reservations, large folders. Each meets an ordinary error. */

import { output } from "@svc/test-kit/system/api";
import { describe, expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";
import { bystander } from "../support/running.ts";

const MIB = 2 ** 20;
const LARGEST = 100 * MIB;
/** Where programs may write: bytes and inodes. The root folder takes an inode, and so does the program's own file. */
const PLACES: [folder: string, bytes: number, inodes: number][] = [
  ["/mnt/data", 512 * MIB, 65_536 - 2],
  ["/tmp", 100 * MIB, 16_384 - 1],
  ["/dev/shm", 64 * MIB, 16_384 - 1],
];
const IMPORTS = `
import mmap
def name(error): return errno.errorcode[error.errno]`;
describe("bytes", () => {
  test.each(PLACES)("%s holds as much as promised, and then no more", async (folder, bytes) => {
    const seen = await evidence<[number, string, string]>(`${IMPORTS}
written, block, end = 0, bytes(1 << 20), None
for number in range(1000):
    try:
        with open(f"${folder}/{number}", "wb", 0) as file:
            for _ in range(50): written += file.write(block)
    except OSError as error: end = name(error); break
again = attempt(lambda: os.write(os.open("${folder}/0", os.O_WRONLY | os.O_APPEND), block))
show([written, end, again])`);
    expect(seen.slice(1)).toEqual(["ENOSPC", "ENOSPC"]);
    expect(seen[0]).toBeLessThanOrEqual(bytes);
    expect(seen[0]).toBeGreaterThan(bytes - MIB);
  });

  test("of one file are bounded exactly, however it is written", async () => {
    const seen = await evidence<Record<string, unknown>>(`${IMPORTS}
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = ${LARGEST}
file = os.open("large", os.O_RDWR | os.O_CREAT)
def sized(action):
    os.ftruncate(file, 0)
    return [attempt(action), os.fstat(file).st_size]
show(dict(
    exact=sized(lambda: os.ftruncate(file, limit)),
    longer=sized(lambda: os.ftruncate(file, limit + 1)),
    path=sized(lambda: os.truncate("large", limit + 1)),
    written=sized(lambda: [os.pwrite(file, b"x", limit - 1), os.pwrite(file, b"x", limit)]),
    reserved=sized(lambda: os.posix_fallocate(file, 0, limit + 1)),
    far=sized(lambda: os.pwrite(file, b"x", 1 << 62)),
    copied=sized(lambda: os.copy_file_range(os.open("main.py", os.O_RDONLY), file, 10, offset_dst=limit)),
    sent=sized(lambda: [os.lseek(file, limit, 0), os.sendfile(file, os.open("main.py", os.O_RDONLY), 0, 10)]),
))
os.unlink("large")`);
    expect(seen).toEqual({
      exact: ["ok", LARGEST],
      longer: ["EFBIG", 0],
      path: ["EFBIG", 0],
      written: ["EFBIG", LARGEST],
      reserved: ["EFBIG", 0],
      far: ["EFBIG", 0],
      copied: ["EFBIG", 0],
      sent: ["EFBIG", 0],
    });
  });

  test("of one file beyond its bound are an error, or a signal to who asks for it", async () => {
    const plain = await hostile({
      lang: "bash",
      code: "head -c 200M /dev/zero > large; echo $?; stat -c %s large",
    });
    expect(plain).toMatchObject({ status: null, stdout: `1\n${LARGEST}\n` });
    expect(plain.files_omitted).toEqual([{ name: "large", reason: "size" }]);
    const code = `import signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
with open("large", "wb") as file:
    while True: file.write(bytes(1 << 20))`;
    const asked = await hostile({ lang: "py", code });
    expect(asked).toMatchObject({ status: "SG", signal: "SIGXFSZ", code: 153 });
  });

  test("behind a mapping that cannot be had are a signal too", async () => {
    const answer = await hostile({
      lang: "py",
      code: `${IMPORTS.replace("mmap", "mmap, os")}
files = []
for n in range(3):
    file = os.open(f"/dev/shm/{n}", os.O_RDWR | os.O_CREAT); os.ftruncate(file, 30 << 20)
    area = mmap.mmap(file, 30 << 20); files.append(area)
    print(n, flush=True)
    for at in range(0, len(area), 4096): area[at] = 1`,
    });
    expect(answer).toMatchObject({ stdout: "0\n1\n2\n", status: "SG", signal: "SIGBUS", code: 135 });
  });

  test("in every place at once, and the outputs still come back", async () => {
    const answer = await hostile({
      lang: "py",
      code: `open("first.txt", "w").write("kept")
for folder in ("/tmp", "/dev/shm", "/mnt/data"):
    try:
        for number in range(1000):
            with open(f"{folder}/filler-{number}", "wb", 0) as file:
                for _ in range(90): file.write(bytes(1 << 20))
    except OSError as error: print(error.strerror)`,
    });
    expect(answer).toMatchObject({ stdout: "No space left on device\n".repeat(3), code: 0, status: null });
    expect((await bystander.send("GET", "/health")).status).toBe(200);
    expect(output(answer, "first.txt").name).toBe("first.txt");
    expect(answer.files_omitted_count).toBe(6);
  });
});

describe("holes and reservations", () => {
  test("a hole takes no room: files of fifty times the workspace are made, and none is an output", async () => {
    const answer = await hostile({
      lang: "py",
      code: `import os
for n in range(256):
    with open(f"sparse-{n}", "wb") as file: file.truncate(${LARGEST})
room = os.statvfs(".")
print(room.f_bfree * room.f_frsize > 500 << 20)`,
    });
    expect(answer).toMatchObject({ stdout: "True\n", code: 0, files: [], files_omitted_count: 256 });
    expect(answer.files_omitted?.every(({ reason }) => reason === "size")).toBe(true);
  });

  test("holes are read as zeros by who collects the outputs, and cost no more than they are", async () => {
    const answer = await hostile({
      lang: "bash",
      code: "truncate -s 10000000 hole; truncate -s 10000001 larger; printf x | dd of=tail bs=1 seek=4999999 2> /dev/null",
    });
    expect(output(answer, "hole").name).toBe("hole");
    expect(output(answer, "tail").name).toBe("tail");
    expect(answer.files_omitted).toEqual([{ name: "larger", reason: "size" }]);
  });

  test("what is reserved counts as if it were written", async () => {
    const seen = await evidence<unknown[]>(`${IMPORTS}
got = 0
for number in range(50):
    file = os.open(f"/tmp/{number}", os.O_RDWR | os.O_CREAT)
    try: os.posix_fallocate(file, 0, 10 << 20); got += 10 << 20
    except OSError as error: end = name(error); break
keep = os.open("/dev/shm/keep", os.O_RDWR | os.O_CREAT)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
ctypes.set_errno(0)
kept = libc.fallocate(keep, 1, 0, 90 << 20)
show([got, end, kept, errno.errorcode.get(ctypes.get_errno()), os.fstat(keep).st_size])`);
    expect(seen).toEqual([100 * MIB, "ENOSPC", -1, "ENOSPC", 0]);
  });

  test("other ways to move what a file holds are refused or harmless", async () => {
    const modes = [0x08, 0x10, 0x20, 0x40, 0x03, 0x7fffffff];
    const seen = await evidence<string[]>(`
file = os.open("/tmp/f", os.O_RDWR | os.O_CREAT); os.write(file, bytes(1 << 20))
show([call(285, file, mode, 0, 4096) for mode in ${JSON.stringify(modes)}] + [call(285, file, 0, -1, 10), call(285, file, 0, 0, 1 << 62)])`);
    // Punching a hole is the one thing that tmpfs can do.
    expect(seen).toEqual(["ENOTSUP", "ENOTSUP", "ENOTSUP", "ENOTSUP", "ok", "ENOTSUP", "EINVAL", "EFBIG"]);
  });
});

describe("inodes", () => {
  const MAKERS: [kind: string, make: string][] = [
    ["files", "os.close(os.open(path, os.O_CREAT | os.O_WRONLY))"],
    ["folders", "os.mkdir(path)"],
    ["links", "os.symlink('/etc/passwd', path)"],
    ["pipes", "os.mkfifo(path)"],
  ];
  const many = (folder: string, make: string) => `${IMPORTS}
os.mkdir("${folder}/.many"); count, end = 0, None
def make(path): ${make}
try:
    while True: make(f"${folder}/.many/{count}"); count += 1
except OSError as error: end = name(error)
found = len(os.listdir("${folder}/.many"))
`;

  test.each(
    PLACES.flatMap(([folder, , inodes]) =>
      MAKERS.map(([kind, make]) => [folder, kind, make, inodes] as const),
    ),
  )("%s has as many as promised for %s", async (folder, _kind, make, inodes) => {
    const seen = await evidence<[number, string, number]>(`${many(folder, make)}show([count, end, found])`);
    expect(seen).toEqual([inodes - 1, "ENOSPC", inodes - 1]);
  });

  test("names of one file: each costs as much as a file", async () => {
    const seen = await evidence<[number, string]>(`${IMPORTS}
open("/tmp/one", "w").close(); count = 0
try:
    while count < 100000: os.link("/tmp/one", f"/tmp/l{count}"); count += 1
    end = None
except OSError as error: end = name(error)
show([count, end])`);
    expect(seen).toEqual([16_384 - 2, "ENOSPC"]);
  });

  test("extended attributes take no room without end", async () => {
    const seen = await evidence<[number, string]>(`${IMPORTS}
open("/tmp/one", "w").close(); count = 0
try:
    while count < 100000: os.setxattr("/tmp/one", f"user.{count}", bytes(4096)); count += 1
    end = None
except OSError as error: end = name(error)
show([count, end])`);
    expect(["ENOTSUP", "ENOSPC"]).toContain(seen[1]);
    expect(seen[0]).toBeLessThan(16_384);
  });
});

describe("large folders", () => {
  test.each([
    ["files", "open(f'many/{n}', 'w').close()", "count"],
    ["folders", "os.mkdir(f'many/{n}')", "count"],
  ])(
    "sixty thousand %s are collected in time, counted, and only the first come back",
    async (_kind, make, reason) => {
      const code = `import os\nos.mkdir("many")\nfor n in range(60000): ${make}\nprint(len(os.listdir("many")))`;
      const answer = await hostile({ lang: "py", code });
      expect(answer).toMatchObject({ stdout: "60000\n", code: 0, status: null });
      expect(answer.files).toHaveLength(50);
      expect(answer.files_omitted_count).toBeGreaterThan(900);
      expect(answer.files_omitted?.[0]?.reason).toBe(reason);
    },
  );

  test("a chain of five thousand folders does not stop the collection", async () => {
    const code = `import os
open("beside.txt", "w").write("kept")
for n in range(5000): os.mkdir("d"); os.chdir("d")
open("end.txt", "w").write("deep")`;
    const answer = await hostile({ lang: "py", code });
    expect(answer).toMatchObject({ code: 0, status: null });
    expect(answer.files.map(({ name }) => name)).toEqual(["beside.txt"]);
  });

  test("names of the greatest length fill no answer", async () => {
    const code = `import os
for n in range(3000): open("x" * 250 + f"{n:05d}", "w").close()`;
    const answer = await hostile({ lang: "py", code });
    expect(answer).toMatchObject({ code: 0, status: null });
    expect(answer.files).toHaveLength(50);
    expect(answer.files_omitted).toHaveLength(100);
  });
});

describe("ordinary use of much room works:", () => {
  test.each([
    [
      "a database",
      `import sqlite3
c = sqlite3.connect("d.db"); c.execute("create table t(x)"); c.executemany("insert into t values (?)", [(n,) for n in range(50000)]); c.commit()
print(c.execute("select sum(x) from t").fetchone()[0])`,
      "1249975000\n",
    ],
    [
      "temporary files",
      `import tempfile
files = [tempfile.NamedTemporaryFile() for _ in range(500)]
print(len({f.name for f in files}))`,
      "500\n",
    ],
    [
      "a large file, written, read and removed",
      `import os
with open("big", "wb") as f:
    for _ in range(90): f.write(os.urandom(1 << 20))
print(os.path.getsize("big")); os.unlink("big")`,
      "94371840\n",
    ],
    [
      "an archive of a thousand files",
      `import os, tarfile
os.mkdir("d")
for n in range(1000): open(f"d/{n}", "w").write(str(n))
with tarfile.open("a.tgz", "w:gz") as t: t.add("d")
with tarfile.open("a.tgz") as t: print(len(t.getmembers()))
import shutil; shutil.rmtree("d")`,
      "1001\n",
    ],
    [
      "shared memory of numpy",
      `from multiprocessing import shared_memory
import numpy as np
m = shared_memory.SharedMemory(create=True, size=40 << 20)
a = np.ndarray((5 << 20,), dtype=np.int64, buffer=m.buf); a[:] = 1; print(a.sum()); del a; m.close(); m.unlink()`,
      "5242880\n",
    ],
  ])("%s", async (_name, code, stdout) => {
    expect(await bystander.exec({ lang: "py", code })).toMatchObject({ stdout, stderr: "", code: 0 });
  });
});
