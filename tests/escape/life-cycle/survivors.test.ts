/** Processes that try to outlive their program, or to harm the first process of their jail. */

import { slow } from "@svc/test-kit/jail/slowness";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { describe, expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";
import { bystander } from "../support/running.ts";

/** The time in which what a run left behind must be gone, on a machine that does other work. */
const GONE_MS = 5000;
/** Goes before each program; `others` is how many of its processes there are beside the first, by any of their threads. */
const BEGIN = `import ctypes, os, signal, sys, threading, time
libc = ctypes.CDLL(None)
def shown(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        if sys.argv[1].encode() in open(f"/proc/{pid}/task/{thread}/cmdline", "rb").read(): return True
    return False
def others():
    count = -1
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try: count += shown(pid)
        except OSError: pass
    return count
`;
/** Once there is such a process the program ends. */
const END = `
while others() < 1: time.sleep(0.01)
print("there", flush=True)
os._exit(0)`;
const inChild = (code: string) => `if os.fork() == 0:\n${code.replace(/^/gm, "    ")}\n    time.sleep(600)`;

const SURVIVORS: [name: string, code: string][] = [
  ["in a session of its own", inChild("os.setsid()")],
  [
    "as a daemon, forked twice",
    inChild("os.setsid()\nif os.fork(): os._exit(0)\nos.chdir('/')\nos.closerange(0, 3)"),
  ],
  [
    "whose parent, a subreaper, adopts it",
    inChild(
      "libc.prctl(36, 1)\nif os.fork() == 0:\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)\nos.wait()",
    ),
  ],
  [
    "that ignores what can be ignored",
    inChild("for s in signal.valid_signals() - {9, 19}: signal.signal(s, signal.SIG_IGN)"),
  ],
  ["that is stopped", inChild("os.kill(os.getpid(), signal.SIGSTOP)")],
  [
    "that waits for its own child without a chance to be woken",
    inChild("if ctypes.PyDLL(None).vfork() == 0: time.sleep(600)"),
  ],
  ["that asks not to die with its parent", inChild("libc.prctl(1, 0); os.setsid()")],
  ["at the end of a chain of a hundred", inChild("for _ in range(100):\n    if os.fork(): break")],
  [
    "that changes its number all the time",
    "for _ in range(20):\n    if os.fork() == 0:\n        while True:\n            try:\n                if os.fork(): os._exit(0)\n            except OSError: pass",
  ],
  ["that forks without end", inChild("while True:\n    try: os.fork()\n    except OSError: pass")],
  [
    "whose first thread has ended",
    inChild("threading.Thread(target=time.sleep, args=(600,)).start()\nlibc.syscall(60, 0)"),
  ],
  [
    "that executes itself without end",
    inChild(
      "os.execv('/proc/self/exe', ['python3', '-c', 'import os, sys; os.execv(\"/proc/self/exe\", sys.orig_argv)', sys.argv[1]])",
    ),
  ],
];

describe("a process left behind is gone with its program:", () => {
  test.each(SURVIVORS)("%s", async (_name, code) => {
    const marker = newMarker();
    const answer = await hostile({ lang: "py", code: `${BEGIN}${code}${END}`, args: [marker] });
    // One that forks may have met the limit before the program ended: then nothing but that is told.
    const note = answer.limits_reached?.length ? /^[^\n]*Process limit reached \(256 [^\n]*\n?$/ : /^$/;
    expect(answer).toMatchObject({ stdout: "there\n", code: 0, status: null });
    expect(answer.stderr).toMatch(note);
    await until(
      () => processesWith(marker).length === 0,
      GONE_MS,
      () => processesWith(marker),
    );
  });

  test("however many of them there are", async () => {
    const marker = newMarker();
    const code = `import os, time\nfor _ in range(250):\n    if os.fork() == 0: os.setsid(); time.sleep(600)\nprint("left")`;
    const answer = await hostile({ lang: "py", code, args: [marker] });
    expect(answer).toMatchObject({ stdout: "left\n", code: 0, status: null });
    await until(() => processesWith(marker).length === 0, GONE_MS);
  });

  test("when it writes into the workspace until its end: what is collected is one state", async () => {
    const code = `
import os, time
for name in ("a", "b"):
    if os.fork() == 0:
        n = 0
        while True:
            n += 1
            with open(f"{name}.tmp", "w") as file: file.write(str(n) * 1000)
            os.rename(f"{name}.tmp", f"{name}.txt")
while not (os.path.exists("a.txt") and os.path.exists("b.txt")): time.sleep(0.01)
time.sleep(0.2)`;
    const answer = await hostile({ lang: "py", code });
    expect(answer).toMatchObject({ code: 0, status: null });
    expect(answer.artifact_delivery).toBeUndefined();
    expect(answer.files.map(({ name }) => name)).toEqual(expect.arrayContaining(["a.txt", "b.txt"]));
  });
});

describe("the first process of the jail", () => {
  test("takes no signal, shows nothing, and cannot be traced, read, written or slowed", async () => {
    const seen = await evidence<Record<string, unknown>>(`
def read(name):
    with open("/proc/1/" + name, "rb") as file: return len(file.read(16))
def write(name, text):
    with open("/proc/1/" + name, "w") as file: file.write(text)
killed = {attempt(lambda: os.kill(1, number)) for number in range(1, 65) if number not in (32, 33)}
show(dict(
    killed=sorted(killed), group=attempt(lambda: os.killpg(os.getpgid(1), 9)) if os.getpgid(1) > 1 else "none",
    handle=call(424, os.pidfd_open(1), 9, 0, 0), attached=call(101, 16, 1, 0, 0), seized=call(101, 0x4206, 1, 0, 0),
    memory=call(310, 1, 0, 0, 0, 0, 0), written=call(311, 1, 0, 0, 0, 0, 0), descriptor=call(438, os.pidfd_open(1), 0, 0),
    limited=call(302, 1, 7, 0, 0), moved=call(203, 1, 8, ctypes.create_string_buffer(b"\\1" * 8)),
    sleepy=attempt(lambda: os.setpriority(os.PRIO_PROCESS, 1, 19)),
    hidden=sorted({attempt(lambda: read(name)) for name in ("mem", "maps", "environ", "auxv", "io", "stack", "syscall", "pagemap")}),
    killable=attempt(lambda: write("oom_score_adj", "1000")), named=attempt(lambda: write("comm", "x")),
    frozen=attempt(lambda: write("timerslack_ns", "1")), alive=attempt(lambda: os.kill(1, 0)),
))`);
    // Signals to it are sent and have no effect: it has handlers for none.
    expect(seen).toMatchObject({ killed: ["ok"], handle: "ok", alive: "ok" });
    for (const name of [
      "attached",
      "seized",
      "memory",
      "written",
      "descriptor",
      "limited",
      "moved",
      "sleepy",
    ]) {
      expect([name, seen[name]]).toEqual([name, expect.stringMatching(/^(ENOSYS|EPERM)$/)]);
    }
    expect(seen.hidden).toEqual(["EACCES"]);
    for (const name of ["killable", "named", "frozen"]) {
      expect([name, seen[name]]).toEqual([name, expect.stringMatching(/^(EACCES|EROFS|EPERM)$/)]);
    }
  });

  test("buries two thousand orphans without a word", async () => {
    const code = `
import os, time
def others(): return sum(map(str.isdigit, os.listdir("/proc"))) - 2
# No more than the process limit allows at a time, however late the first process gets a processor.
until = time.monotonic() + ${slow(20)}
for _ in range(20):
    if os.fork() == 0:
        for _ in range(100):
            if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
    while others() > 0 and time.monotonic() < until: time.sleep(0.002)
print("buried", others())`;
    const answer = await hostile({ lang: "py", code });
    expect(answer).toMatchObject({ stdout: "buried 0\n", stderr: "", code: 0, status: null });
  });

  test("does its work under a flood of signals", async () => {
    const code = `
import os, time
for _ in range(4):
    if os.fork() == 0:
        while True:
            for number in (1, 2, 10, 15, 17, 18, 19, 34, 64): os.kill(1, number)
time.sleep(1)
for _ in range(100):
    if os.fork() == 0: os._exit(0)
os._exit(9)`;
    expect(await hostile({ lang: "py", code })).toMatchObject({ code: 9, status: null, stderr: "" });
  });

  test("does not take a child's end for the program's", async () => {
    const code =
      "import os, time\nfor code in range(50):\n    if os.fork() == 0:\n        if os.fork() == 0: os._exit(99)\n        os._exit(77)\ntime.sleep(0.3)\nprint('on')\nos._exit(5)";
    expect(await hostile({ lang: "py", code })).toMatchObject({ stdout: "on\n", code: 5, status: null });
  });

  test("ends with the program also when that is executed anew by a thread, or leaves a thread behind", async () => {
    const anew =
      "import os, threading\nthreading.Thread(target=lambda: os.execv('/bin/sh', ['sh', '-c', 'echo anew; exit 4'])).start()\nthreading.Event().wait()";
    expect(await hostile({ lang: "py", code: anew })).toMatchObject({
      stdout: "anew\n",
      code: 4,
      status: null,
    });
    const left =
      "import ctypes, threading, time\nthreading.Thread(target=lambda: (time.sleep(0.5), print('last', flush=True))).start()\nctypes.CDLL(None).syscall(60, 0)";
    expect(await hostile({ lang: "py", code: left })).toMatchObject({ stdout: "last\n", status: null });
  });
});

test("what lives in good order until its end works", async () => {
  const code = `coproc cat; echo ping >&\${COPROC[1]}; read -r line <&\${COPROC[0]}; echo $line; nohup sleep 0.1 2> /dev/null; sleep 0.1 & wait $!; (sleep 60 & disown); kill $COPROC_PID; echo end`;
  expect(await bystander.exec({ lang: "bash", code })).toMatchObject({ stdout: "ping\nend\n", code: 0 });
});
