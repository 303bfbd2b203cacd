/** Programs that take memory in every way there is: each ends as out of memory, whatever kind of memory it was. */
import { describe, expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";
import { bomb, expectOutOfMemory, inProcesses } from "../support/memory.ts";

const BOMBS: [name: string, program: ReturnType<typeof bomb>][] = [
  [
    "the heap, by brk",
    bomb(`libc.sbrk.restype = ctypes.c_void_p
while (at := libc.sbrk(16 << 20)) != ctypes.c_void_p(-1).value: ctypes.memset(at, 1, 16 << 20)`),
  ],
  [
    "one mapping that one call fills",
    bomb("kept = mmap.mmap(-1, 2 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000)"),
  ],
  [
    "pages shared between processes",
    bomb(`kept = mmap.mmap(-1, 700 << 20)
for at in range(0, len(kept), 4096): kept[at] = 1`),
  ],
  ["many small processes", inProcesses(120, "kept = b'x' * (6 << 20)")],
  [
    "a grandchild, while parent and child only wait",
    bomb(`if os.fork() == 0:
    if os.fork() == 0: kept = b"x" * (700 << 20)
    os.wait()
os.wait()
time.sleep(60)`),
  ],
  [
    "memory files",
    bomb(`for n in range(50): os.write(os.memfd_create(str(n)), bytes(16 << 20))
time.sleep(60)`),
  ],
  [
    "shared memory of System V",
    bomb(`libc.shmat.restype = ctypes.c_void_p
for _ in range(8): ctypes.memset(libc.shmat(libc.shmget(0, 100 << 20, 0o1600), None, 0), 1, 100 << 20)
time.sleep(60)`),
  ],
  [
    "memory beside three full file systems",
    bomb(`for folder in ("/mnt/data", "/tmp", "/dev/shm"):
    try:
        for n in range(60000):
            with open(f"{folder}/{n}", "wb") as file: file.write(bytes(16 << 20))
    except OSError: pass
kept = b"x" * (600 << 20)`),
  ],
  [
    "files that were removed while they are open, beside memory",
    bomb(`held = []
for n in range(5):
    held.append(open("gone", "wb")); os.unlink("gone"); held[-1].write(bytes(90 << 20)); held[-1].flush()
kept = b"x" * (600 << 20)`),
  ],
  [
    "semaphores of System V",
    bomb(`while libc.semget(0, 32000, 0o1600) >= 0: pass
time.sleep(60)`),
  ],
];

describe("out of memory by", () => {
  test.each(BOMBS)("%s", (_name, program) => expectOutOfMemory(program));
});

describe("what the kernel keeps for a program is its program's memory:", () => {
  const OBJECTS = 200_000;
  test.each([
    [
      "watches of epoll",
      128,
      `import os, select
events = [os.eventfd(0) for _ in range(1000)]
held = [select.epoll() for _ in range(${OBJECTS} // 1000)]
for poll in held:
    for event in events: poll.register(event)`,
    ],
    [
      "names that were asked for in vain",
      128,
      `import ctypes, os
libc, prefix = ctypes.CDLL(None), b"/usr/lib/" + os.urandom(8).hex().encode()
for n in range(${OBJECTS}): libc.access(b"%s%d" % (prefix, n), 0)`,
    ],
    [
      "bytes in pipes",
      100,
      `import os
ends = [os.pipe() for _ in range(800)]
for _, write in ends: os.set_blocking(write, False); os.write(write, bytes(65536))`,
    ],
  ])("%s", async (_name, bytes, code) => {
    const answer = await hostile({ lang: "py", code: `${code}\nprint("held")`, run_timeout: 60_000 });
    expect(answer).toMatchObject({ stdout: "held\n", status: null, code: 0 });
    expect(answer.memory).toBeGreaterThan(OBJECTS * bytes);
  });
});
