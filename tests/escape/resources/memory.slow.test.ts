/** Programs that take memory by way of the kernel, in pieces so small that it lasts: each ends as out of memory. */
import { slow } from "@svc/test-kit/jail/slowness";
import { IN_GUESTS } from "@svc/test-kit/system/guests";
import { describe, expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";
import { bomb, expectOutOfMemory, FILL_STACK, inProcesses } from "../support/memory.ts";
import { bystander } from "../support/running.ts";

/** A kernel allows as many as fit into a twenty-fifth of its memory (epoll(7)): a microVM's, fewer than fill the limit of a run. */
const WATCHES: [name: string, program: ReturnType<typeof bomb>][] = [
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
];

const BOMBS: [name: string, program: ReturnType<typeof bomb>][] = [
  [
    "the heap, in small pieces",
    bomb(`kept = []
while True: kept.append(os.urandom(200))`),
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
    "a stack without limit",
    {
      lang: "bash",
      run_timeout: 120_000,
      code: `ulimit -s unlimited; exec python3 -c '${FILL_STACK}'`,
    },
  ],
  ...(IN_GUESTS ? [] : WATCHES),
];

describe("out of memory by", () => {
  test.each(BOMBS)("%s", (_name, program) => expectOutOfMemory({ ...program, run_timeout: 120_000 }));
});

describe("names of files that do not exist", () => {
  test("asked for by the million end at most their own run: no later one on any slot notices", async () => {
    const code = `
import ctypes, os
libc = ctypes.CDLL(None)
print("began", flush=True)
for part in range(2):
    if os.fork() == 0:
        prefix = b"/usr/lib/" + os.urandom(100).hex().encode()
        for n in range(1_000_000): libc.access(b"%s%d" % (prefix, n), 0)
        os._exit(0)
for _ in range(2): os.wait()`;
    const asked = await hostile({ lang: "py", code, run_timeout: slow(60_000) });
    expect(asked).toMatchObject({ stdout: "began\n", status: "ML" });
    const next = { lang: "py", code: "kept = b'x' * (300 << 20); print('fits')" };
    for (let round = 0; round < 4; round++) {
      const answers = await Promise.all(Array.from({ length: 6 }, () => bystander.exec(next)));
      for (const answer of answers) expect(answer).toMatchObject({ status: null, stdout: "fits\n" });
    }
  });
});
