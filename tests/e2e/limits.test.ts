/** Programs that take all they can get: each ends as its own cause, and the others do not notice. */

import { slow } from "@svc/test-kit/jail/slowness";
import { Api, type ExecInput } from "@svc/test-kit/system/api";
import { observe } from "@svc/test-kit/system/bystander";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { type Service, startService } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

/** A bystander's request is answered within this, whatever somebody else's program does. */
const BYSTANDER_MS = slow(5000);
/** The time in which what a run left behind must be gone, on a machine that does other work. */
const GONE_MS = slow(5000);
let system: Service;
let api: Api;

beforeAll(async () => {
  system = await startService({ ...OPEN_LIMITS, SANDBOX_MAX_CONCURRENT_JOBS: "8" });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

/** Runs a program while a bystander is served; answers the program's result. */
async function besideBystander(input: ExecInput) {
  const { result, observed } = await observe(api, api.exec(input));
  expect(observed.failures).toEqual([]);
  expect(observed.served).toBeGreaterThan(0);
  console.log(`bystander: ${observed.served} served, slowest ${Math.round(observed.worstMs)} ms`);
  expect(observed.worstMs).toBeLessThan(BYSTANDER_MS);
  return result;
}

const TIMEOUT = {
  status: "TO",
  code: 137,
  signal: "SIGKILL",
  message: "Time limit exceeded",
  stderr: expect.stringMatching(/^\[sandbox\] Time limit exceeded \(1\.5 s\)\n$/),
};
const MEMORY = {
  status: "ML",
  code: 137,
  signal: "SIGKILL",
  message: "Out of memory",
};

const OUT_OF_MEMORY = "[sandbox] Out of memory (limit 512 MiB)\n";

describe("time", () => {
  test("an endless loop ends at its limit, within 100 ms when the machine is not busy", async () => {
    const times: number[] = [];
    for (let run = 0; run < 5; run++) {
      const answer = await api.exec({ lang: "py", code: "while True: pass", run_timeout: 1500 });
      expect(answer).toMatchObject(TIMEOUT);
      expect(answer.wall_time).toBeGreaterThanOrEqual(1500);
      times.push(answer.wall_time);
    }
    expect(Math.min(...times)).toBeLessThanOrEqual(1500 + slow(100));
  });

  test.each([
    ["that ignores every signal", "trap '' $(seq 1 64) 2>/dev/null; while :; do sleep 1; done"],
    ["that stops itself", "kill -STOP $$; echo awake"],
    ["that spreads over children", "for n in 1 2 3 4; do (while :; do :; done) & done; wait"],
  ])("a program %s ends at its limit", async (_name, code) => {
    const answer = await besideBystander({ lang: "bash", code, run_timeout: 1500 });
    expect(answer).toMatchObject(TIMEOUT);
    expect(answer.wall_time).toBeGreaterThanOrEqual(1500);
  });
});

describe("output", () => {
  test("200 MB of output end as OL, long before they are written", async () => {
    const code = "import os\nblock = b'x' * 1000000\nfor _ in range(200): os.write(1, block)";
    const answer = await besideBystander({ lang: "py", code });
    expect(answer).toMatchObject({
      status: "OL",
      code: 137,
      signal: "SIGKILL",
      message: "stdout length exceeded",
      stderr: expect.stringMatching(
        /^\[sandbox\] stdout length exceeded \(64 KiB kept of [\d,]+ bytes; write large results to a file\)\n$/,
      ),
      stdout: "x".repeat(65_536),
    });
  });

  test("the same on stderr, from many processes, ends as EL", async () => {
    const answer = await besideBystander({ lang: "bash", code: "for n in 1 2 3 4; do yes >&2 & done; wait" });
    expect(answer).toMatchObject({ status: "EL", code: 137, message: "stderr length exceeded" });
    expect(
      answer.stderr.startsWith(`${"y\n".repeat(32_768)}[sandbox] stderr length exceeded (64 KiB kept of `),
    ).toBe(true);
  });
});

describe("processes", () => {
  test("a fork bomb meets an ordinary error", async () => {
    // The first to meet it ends the program, whose exit code tells which error it was. A fork in a jail that ends may fail with another.
    const code = `
import errno, os, signal
bomb = os.getpid()
signal.signal(signal.SIGUSR1, lambda *_: os._exit(3))
signal.signal(signal.SIGUSR2, lambda *_: os._exit(4))
while True:
    try:
        os.fork()
    except OSError as error:
        os.kill(bomb, signal.SIGUSR1 if error.errno == errno.EAGAIN else signal.SIGUSR2)
        signal.pause()`;
    const answer = await besideBystander({ lang: "py", code });
    expect(answer).toMatchObject({
      status: null,
      code: 3,
      stdout: "",
      stderr: "[sandbox] Process limit reached (256 processes and threads)\n",
      limits_reached: [{ limit: "processes", value: 256 }],
    });
  });

  test("a fork bomb that goes on meets its time limit", async () => {
    const code = `
import os
while True:
    try: os.fork()
    except OSError: pass`;
    const answer = await besideBystander({ lang: "py", code, run_timeout: 1500 });
    // How many processes it comes to until then is the machine's affair.
    expect(answer).toMatchObject({
      ...TIMEOUT,
      stderr: expect.stringMatching(/Time limit exceeded \(1\.5 s\)\n$/),
    });
  });

  test("a shell's fork bomb hurts nobody", async () => {
    const answer = await besideBystander({
      lang: "bash",
      code: ":(){ :|:& };:; sleep 60",
      run_timeout: 2000,
    });
    expect(["TO", "ML", "EL", null]).toContain(answer.status);
  });

  test("too many threads are an ordinary error", async () => {
    const code = `
import threading
stop = threading.Event()
count = 0
try:
    while count < 5000:
        threading.Thread(target=stop.wait, daemon=True).start(); count += 1
except RuntimeError as error:
    print(error, 100 < count < 300)
stop.set()`;
    const answer = await besideBystander({ lang: "py", code });
    expect(answer).toMatchObject({ status: null, code: 0, stdout: "can't start new thread True\n" });
  });

  const HOLD = `python3 -c 'import time; time.sleep(600)' MARK`;
  test.each([
    ["in the background", `${HOLD} &`],
    ["in a session of its own", `setsid ${HOLD} &`],
    [
      "as a daemon that ignores signals",
      `(trap "" HUP TERM INT; setsid ${HOLD} < /dev/null > /dev/null 2>&1 &)`,
    ],
    ["that forks without end", `(while :; do (${HOLD} &); sleep 0.05; done) &`],
  ])("a process left behind %s is gone", async (_name, code) => {
    const marker = newMarker();
    const program = `${code.replaceAll("MARK", marker)}\nsleep 0.5; pgrep -cf ${marker}`;
    const answer = await api.exec({ lang: "bash", code: program });
    expect(answer.status).toBeNull();
    expect(Number(answer.stdout)).toBeGreaterThanOrEqual(1);
    await until(
      () => processesWith(marker).length === 0,
      GONE_MS,
      () => processesWith(marker),
    );
  });
});

describe("memory", () => {
  test("a memory bomb ends as ML", async () => {
    const code = "print('started', flush=True)\nkept = []\nwhile True: kept.append(bytearray(16 << 20))";
    const answer = await besideBystander({ lang: "py", code });
    expect(answer).toMatchObject({ ...MEMORY, stdout: "started\n", stderr: OUT_OF_MEMORY });
  });

  test("a child that eats the memory ends the whole run as ML", async () => {
    const code = `
import os, time
if os.fork() == 0:
    kept = []
    while True: kept.append(bytearray(16 << 20))
try:
    os.wait()
finally:
    print("the parent went on", flush=True)
time.sleep(60)`;
    const answer = await besideBystander({ lang: "py", code });
    expect(answer).toMatchObject(MEMORY);
    expect(answer.stderr).toContain(OUT_OF_MEMORY);
  });

  test("many small eaters together end as ML", async () => {
    const code = `
import os, time
for _ in range(40):
    if os.fork() == 0:
        kept = bytearray(os.urandom(1 << 20) * 30)
        time.sleep(60)
time.sleep(60)`;
    const answer = await besideBystander({ lang: "py", code, run_timeout: 30_000 });
    expect(answer).toMatchObject(MEMORY);
  });
});

describe("disk", () => {
  const FILL = (folder: string) => `
import errno, sys
names = iter(range(10000))
try:
    while True:
        with open(f"${folder}/{next(names)}.bin", "wb") as file:
            for _ in range(50): file.write(b"x" * 1000000)
except OSError as error:
    print(errno.errorcode[error.errno])
    sys.exit(7)`;

  test("a full workspace is an ordinary error of the program", async () => {
    const answer = await besideBystander({ lang: "py", code: FILL("/mnt/data") });
    expect(answer).toMatchObject({ status: null, code: 7, stdout: "ENOSPC\n" });
  });

  test("a full /tmp is an ordinary error of the program", async () => {
    const answer = await besideBystander({ lang: "py", code: FILL("/tmp") });
    expect(answer).toMatchObject({ status: null, code: 7, stdout: "ENOSPC\n", files: [] });
  });

  test("a file that is too large is an ordinary error of the program", async () => {
    const code = `
import errno
try:
    with open("large.bin", "wb") as file:
        while True: file.write(b"x" * 1000000)
except OSError as error:
    print(errno.errorcode[error.errno])`;
    const answer = await besideBystander({ lang: "py", code });
    expect(answer).toMatchObject({ status: null, code: 0, stdout: "EFBIG\n" });
  });

  test("an inode bomb is an ordinary error of the program", async () => {
    const code = `
import errno, os
os.mkdir("many")
count = 0
try:
    while True:
        os.close(os.open(f"many/{count}", os.O_CREAT | os.O_WRONLY)); count += 1
except OSError as error:
    print(errno.errorcode[error.errno], count > 1000)`;
    const answer = await besideBystander({ lang: "py", code });
    expect(answer).toMatchObject({ status: null, code: 0, stdout: "ENOSPC True\n" });
    expect(answer.files).toHaveLength(50);
    expect(answer.files_omitted_count).toBeGreaterThan(900);
  });
});
