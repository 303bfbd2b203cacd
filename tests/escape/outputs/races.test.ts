/** Files that are swapped, changed and removed while the program ends: only bytes of the workspace come back, whole. */
import type { ExecResponse } from "@svc/contracts";
import { slow } from "@svc/test-kit/jail/slowness";
import type { ExecInput } from "@svc/test-kit/system/api";
import { expect, test } from "vitest";
import { besiege } from "../support/hostile.ts";
import { attacker } from "../support/running.ts";

/** Runs a program so many times, one after the other. */
const again = (times: number, program: ExecInput): Promise<ExecResponse[]> =>
  besiege(async () => {
    const answers: ExecResponse[] = [];
    for (let round = 0; round < times; round++) answers.push(await attacker.exec(program));
    return answers;
  });

/** Processes that swap a file, a link and a folder for each other until they are killed, each in a session of its own. */
const SWAPPERS = `
import ctypes, os, signal, sys
libc = ctypes.CDLL(None)
open("f", "w").write("inside"); os.symlink("/etc/passwd", "l"); os.mkdir("d"); open("d/f", "w").write("inside"); os.symlink("/etc", "e")
for n in range(6):
    if os.fork() == 0:
        os.setsid()
        for s in range(1, 65):
            try: signal.signal(s, signal.SIG_IGN)
            except (OSError, ValueError): pass
        while True:
            for a, b in ((b"f", b"l"), (b"d", b"e"), (b"d/f", b"f"), (b"d", b"l")):
                libc.renameat2(-100, a, -100, b, 2)
`;

test.each([
  ["ends by itself", "import time; time.sleep(0.05)", {}],
  ["is killed at its time limit", "import time; time.sleep(60)", { run_timeout: slow(1000) }],
  ["kills itself", "os.kill(os.getpid(), 9)", {}],
])(
  "a program whose children go on swapping when it %s gives no byte from outside",
  async (_how, end, more) => {
    for (const answer of await again(6, { lang: "py", code: SWAPPERS + end, ...more })) {
      for (const file of answer.files) expect((await attacker.bytes(file)).toString()).toMatch(/^(inside)?$/);
      expect(answer.files.length + (answer.files_omitted?.length ?? 0)).toBeGreaterThan(0);
    }
  },
);

test("a file that grows and shrinks until the end comes back as one state of it, or not at all", async () => {
  const code = `
import os, time
for n in range(4):
    if os.fork() == 0:
        fd = os.open(f"f{n}", os.O_RDWR | os.O_CREAT)
        while True:
            for size in (1, 500_000, 20_000_000, 100, 0, 999_999): os.ftruncate(fd, size)
time.sleep(0.2)`;
  for (const answer of await again(5, { lang: "py", code })) {
    for (const file of answer.files) {
      expect([0, 1, 100, 500_000, 999_999]).toContain((await attacker.bytes(file)).length);
    }
  }
});

test("mappings and descriptors that outlive the program change nothing that was returned", async () => {
  const code = `
import mmap, os, time
f = open("f", "w+b"); f.write(b"a" * 4096); f.flush()
area = mmap.mmap(f.fileno(), 4096)
if os.fork() == 0:
    os.setsid()
    n = 0
    while True: area[:] = bytes([97 + n % 26]) * 4096; n += 1
time.sleep(0.1)`;
  for (const { files } of await again(8, { lang: "py", code })) {
    const [file] = files;
    if (file === undefined) throw new Error("no output");
    const [first, second] = [await attacker.bytes(file), await attacker.bytes(file)];
    expect(first.length).toBe(4096);
    expect(first.equals(second)).toBe(true);
  }
});

test("the workspace itself is moved, closed, emptied and filled until the end", async () => {
  const code = `
import os, shutil, time
for _ in range(3):
    if os.fork() == 0:
        while True:
            try:
                os.makedirs("a/b/c", exist_ok=True); open("a/b/c/f", "w").write("inside"); os.chmod("/mnt/data", 0); os.chmod("/mnt/data", 0o755); shutil.rmtree("a", ignore_errors=True)
            except OSError: pass
time.sleep(0.3)`;
  for (const answer of await again(5, { lang: "py", code })) {
    expect(answer).toMatchObject({ code: 0, status: null });
    for (const file of answer.files) expect((await attacker.bytes(file)).toString()).toMatch(/^(inside)?$/);
  }
});
