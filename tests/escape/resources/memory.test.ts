/** Programs that take memory in every way there is: each ends as out of memory, whatever kind of memory it was. */
import { describe, expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";

const MIB = 2 ** 20;
/** What the group of a run may hold at most: its memory and its three file systems, full. */
const CEILING = (512 + 512 + 100 + 64) * MIB;
const OUT_OF_MEMORY = {
  status: "ML",
  code: 137,
  signal: "SIGKILL",
  message: "Out of memory",
  stdout: "began\n",
};

/** A program that says that it began, and that it lived if nothing stops it. */
const bomb = (body: string) => ({
  lang: "py",
  run_timeout: 60_000,
  code: `import ctypes, fcntl, mmap, os, resource, select, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
print("began", flush=True)
${body}
print("survived", flush=True)`,
});

/** The same in each of so many processes; the parent waits for all of them. */
const inProcesses = (count: number, body: string) =>
  bomb(`for _ in range(${count}):
    if os.fork() == 0:
        try:
${body.replace(/^/gm, " ".repeat(12))}
        finally: time.sleep(60)
time.sleep(60)`);

const BOMBS: [name: string, program: ReturnType<typeof bomb>][] = [
  [
    "the heap, by brk",
    bomb(`libc.sbrk.restype = ctypes.c_void_p
while (at := libc.sbrk(16 << 20)) != ctypes.c_void_p(-1).value: ctypes.memset(at, 1, 16 << 20)`),
  ],
  [
    "the heap, in small pieces",
    bomb(`kept = []
while True: kept.append(os.urandom(200))`),
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
    "pipes",
    inProcesses(
      120,
      `while True:
    read, write = os.pipe2(os.O_NONBLOCK)
    try:
        while True: os.write(write, bytes(65536))
    except BlockingIOError: pass`,
    ),
  ],
  [
    "buffers of sockets",
    inProcesses(
      4,
      `kept = []
while True:
    pair = socket.socketpair(); kept.append(pair)
    for end in pair:
        end.setblocking(False)
        try:
            while True: end.send(bytes(32768))
        except BlockingIOError: pass`,
    ),
  ],
  [
    "page tables alone",
    bomb(`kept = mmap.mmap(-1, 1 << 40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
kept.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(0, len(kept), 2 << 20): kept[at]`),
  ],
  [
    "watches of epoll",
    inProcesses(
      8,
      `events = [os.eventfd(0) for _ in range(1000)]
while True:
    poll = select.epoll()
    held = globals().setdefault("held", []); held.append(poll)
    for event in events: poll.register(event)`,
    ),
  ],
  [
    "locks on ranges of files",
    inProcesses(
      4,
      `files = [open(f"/tmp/{os.getpid()}-{n}", "wb") for n in range(1500)]
for at in range(1 << 30, 0, -2):
    for file in files: fcntl.lockf(file, fcntl.LOCK_EX, 1, at)`,
    ),
  ],
  [
    "semaphores of System V",
    bomb(`while libc.semget(0, 32000, 0o1600) >= 0: pass
time.sleep(60)`),
  ],
  [
    "messages of System V",
    inProcesses(
      4,
      `text = ctypes.create_string_buffer(b"\\1" + bytes(8300))
while (queue := libc.msgget(0, 0o1600)) >= 0:
    while libc.msgsnd(queue, text, 8192, 0o4000) == 0: pass`,
    ),
  ],
  [
    "a stack without limit",
    {
      lang: "bash",
      run_timeout: 60_000,
      code: "echo began; ulimit -s unlimited; bash -c 'f() { f; }; f'; echo survived",
    },
  ],
];

describe("out of memory by", () => {
  test.each(BOMBS)("%s", async (_name, program) => {
    const answer = await hostile(program);
    expect(answer).toMatchObject(OUT_OF_MEMORY);
    expect(answer.stderr).toMatch(/(^|\n)\[sandbox\] Out of memory\n$/);
    expect(answer.memory).toBeGreaterThan(500 * MIB);
    expect(answer.memory).toBeLessThanOrEqual(CEILING);
  });
});
