/** Random system calls for a minute, from eight programs at once: the kernel is not troubled, and nobody else notices. */
import { expect, test } from "vitest";
import { hostiles, PYTHON } from "../support/hostile.ts";
import { listenToKernel } from "../support/kernel-log.ts";

const SECONDS = 60;
const PROGRAMS = 8;
/** Far below what a busy machine makes of them. */
const CALLS = 100_000;

/**
 * Each child calls until something ends it, its streams closed. Numbers that would only end the storm are left out: exits,
 * the child's own memory and signals, waiting for ever, signals to others.
 */
const STORM = `${PYTHON}
import mmap, random, struct, sys, time
skipped = {0, 7, 9, 10, 11, 12, 13, 14, 15, 19, 22, 23, 25, 28, 33, 34, 35, 37, 38, 56, 57, 58, 59, 60, 61, 62, 73, 101, 128, 129, 130,
  149, 151, 157, 158, 160, 200, 202, 216, 230, 231, 232, 234, 247, 270, 271, 281, 292, 293, 295, 297, 302, 322, 327, 329, 424, 435, 441, 449}
numbers = [n for n in range(480) if n not in skipped]
counter = mmap.mmap(-1, 4096)
libc.syscall.argtypes = None

def storm(seed):
    random.seed(seed)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2): os.dup2(null, fd)
    os.makedirs(f"/tmp/{seed}", exist_ok=True); os.chdir(f"/tmp/{seed}")
    open("file", "w").write("x" * 5000)
    fds = [os.open("file", os.O_RDWR), os.open(".", os.O_RDONLY), os.open("/proc/self", os.O_RDONLY), *os.pipe(), os.memfd_create("m"), os.pidfd_open(os.getpid())]
    area = mmap.mmap(-1, 1 << 16)
    base = ctypes.addressof(ctypes.c_char.from_buffer(area))
    area[0:5] = b"file\\0"; area[64:70] = b"other\\0"; area[128:140] = b"/proc/self\\0\\0"
    choices = [lambda: random.choice((0, 1, 2, 3, 8, 0xffffffff, (1 << 64) - 1, 1 << 32, 1 << 63)), lambda: random.choice(fds), lambda: random.getrandbits(16),
      lambda: random.getrandbits(64), lambda: base + random.choice((0, 64, 128, 4096, 8191)), lambda: 1 << random.randrange(64), lambda: random.choice(fds) | 1 << 32]
    made = 0
    while True:
        if made % 64 == 0: area[8192:12288] = random.randbytes(4096)
        libc.syscall(ctypes.c_long(random.choice(numbers)), *[ctypes.c_ulong(random.choice(choices)()) for _ in range(6)])
        made += 1
        if made % 32 == 0: counter[:8] = struct.pack("<Q", struct.unpack("<Q", counter[:8])[0] + 32)

until = time.monotonic() + ${SECONDS}
seed = int(sys.argv[1]) * 1000000
while time.monotonic() < until:
    seed += 1
    try: pid = os.fork()
    except OSError: time.sleep(0.05); continue
    if pid == 0:
        try: storm(seed)
        finally: os._exit(0)
    for _ in range(50):
        if os.waitpid(pid, os.WNOHANG)[0]: break
        time.sleep(0.01)
    else:
        os.kill(pid, 9); os.waitpid(pid, 0)
print(struct.unpack("<Q", counter[:8])[0])`;

test(`${PROGRAMS} programs make random calls for ${SECONDS} seconds`, async () => {
  const troubles = listenToKernel();
  const base = Date.now() % 1_000_000;
  console.log(`seeds from ${base}`);
  const programs = Array.from({ length: PROGRAMS }, (_, at) => ({
    lang: "py",
    code: STORM,
    args: [`${base + at}`],
    run_timeout: (SECONDS + 60) * 1000,
  }));
  const answers = await hostiles(programs);
  expect(troubles()).toEqual([]);
  // A storm may hit its own parent; what ends it is its own doing, never the service's.
  for (const { status, stderr } of answers)
    expect([[null, "SG", "ML"].includes(status), stderr]).toEqual([true, expect.anything()]);
  const calls = answers.map(({ stdout }) => Number(stdout.trim()));
  expect(calls.filter((count) => count > 0).length).toBeGreaterThanOrEqual(PROGRAMS - 2);
  const total = calls.reduce((sum, count) => sum + count, 0);
  console.log(`${total} calls`);
  expect(total).toBeGreaterThan(CALLS);
});
