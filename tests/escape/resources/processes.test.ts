/** Programs that multiply: each meets the number of processes it was promised, or its time, and all of it is gone at its end. */
import { describe, expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";
import { FILL_STACK } from "../support/memory.ts";
import { bystander } from "../support/running.ts";

const PROCESSES = 256;
const TIMEOUT = { status: "TO", code: 137, signal: "SIGKILL", message: "Time limit exceeded" };
const RUN_MS = 1500;
const python = (code: string, more: object = {}) => ({ lang: "py", code, ...more });

/** Takes processes until there are none; says how many it got and how it was refused. */
const taking = (take: string) => `
import _thread, ctypes, errno, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
count = 0
while True:
    try: ${take}
    except (OSError, RuntimeError) as error:
        os.write(1, f"{count} {error}\\n".encode()); break
    count += 1`;
const AGAIN = "[Errno 11] Resource temporarily unavailable";

describe("the promised number of processes and threads is exact for", () => {
  test.each([
    ["children", "os.fork() or time.sleep(60)", AGAIN],
    ["threads", "_thread.start_new_thread(time.sleep, (60,))", "can't start new thread"],
    ["zombies", "os.fork() or os._exit(0)", AGAIN],
    ["stopped children", "os.fork() or os.kill(os.getpid(), signal.SIGSTOP)", AGAIN],
    ["children in sessions of their own", "os.fork() or (os.setsid(), time.sleep(60))", AGAIN],
  ])("%s", async (_name, take, error) => {
    const answer = await hostile(python(`${taking(take)}\nos._exit(5)`));
    expect(answer).toMatchObject({ status: null, code: 5, stdout: `${PROCESSES - 1} ${error}\n` });
  });

  test("children and threads together", async () => {
    const take = "os.fork() or time.sleep(60) if count % 2 else _thread.start_new_thread(time.sleep, (60,))";
    const answer = await hostile(python(`${taking(take)}\nos._exit(5)`));
    expect(answer).toMatchObject({ status: null, code: 5, stdout: expect.stringMatching(/^255 /) });
  });

  test("processes that were waited for: there is room again", async () => {
    const code = `
import os, time
def fill():
    pids = []
    try:
        while True:
            pid = os.fork()
            if pid == 0: os._exit(0)
            pids.append(pid)
    except OSError: return pids
for _ in range(3):
    pids = fill(); print(len(pids), flush=True)
    for pid in pids: os.waitpid(pid, 0)`;
    const line = `${PROCESSES - 1}\n`;
    expect(await hostile(python(code))).toMatchObject({ status: null, code: 0, stdout: line.repeat(3) });
  });
});

describe("bombs that never end by themselves end at their time:", () => {
  const BOMBS: [name: string, program: object][] = [
    ["fork in Bash", { lang: "bash", code: ":(){ :|:& };: 2> /dev/null; sleep 60" }],
    ["fork in Python", python("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass")],
    [
      "fork in Node",
      {
        lang: "js",
        code: `const {spawn}=require("child_process");
const go=()=>spawn("/bin/sleep",["60"]).on("error",()=>setTimeout(go,50)).on("spawn",go); for(let i=0;i<8;i++)go()`,
      },
    ],
    [
      "children that fork and end at once, so that no process lives long",
      {
        lang: "bash",
        code: `python3 -c '
import os
for _ in range(40):
    if os.fork() == 0:
        while True:
            try:
                if os.fork(): os._exit(0)
            except OSError: pass
'; sleep 60`,
      },
    ],
    [
      "threads that start threads",
      python(
        "import _thread, time\ndef grow():\n    while True:\n        try: _thread.start_new_thread(grow, ())\n        except RuntimeError: pass\ngrow()",
      ),
    ],
    [
      "vfork, each child within its parent",
      python("import ctypes\nvfork = ctypes.PyDLL(None).vfork\nwhile True: vfork()"),
    ],
    ["exec of itself", { lang: "bash", code: 'exec "$BASH" "$0"' }],
    [
      "exec of itself, leaving a child each time",
      { lang: "bash", code: '"$BASH" "$0" 2> /dev/null & exec "$BASH" "$0"' },
    ],
    [
      "loops in children",
      { lang: "bash", code: "for n in $(seq 60); do (while :; do :; done) & done; wait" },
    ],
    [
      "loops in threads",
      {
        lang: "js",
        code: `const {Worker}=require("worker_threads");for(let i=0;i<8;i++)new Worker("while(true);",{eval:true});while(true);`,
      },
    ],
    ["orphans, as fast as they can be made", { lang: "bash", code: "while :; do (: &); done" }],
    [
      "signals to everybody, without end",
      python(
        "import os, signal\nfor s in range(1, 65):\n    if s not in (9, 19):\n        try: signal.signal(s, signal.SIG_IGN)\n        except OSError: pass\nfor _ in range(20): os.fork() if os.getpid() == 2 else 0\nwhile True: os.kill(-1, signal.SIGUSR1)",
      ),
    ],
    [
      "descriptors opened and closed without end",
      python(
        "import os\nfor _ in range(3): os.fork()\nwhile True: os.close(os.open('/mnt/data/main.py', os.O_RDONLY))",
      ),
    ],
    ["yielding without end", python("import os\nfor _ in range(5): os.fork()\nwhile True: os.sched_yield()")],
  ];

  test.each(BOMBS)("%s", async (_name, program) => {
    const answer = await hostile({ run_timeout: RUN_MS, ...program });
    expect(answer).toMatchObject(TIMEOUT);
    expect(answer.wall_time).toBeGreaterThanOrEqual(RUN_MS);
  });
});

describe("waits that no signal but the last ends", () => {
  const WAITING = `
import ctypes, os, time
if (waiting := os.fork()) == 0:
    if ctypes.PyDLL(None).vfork() == 0:
        while True: time.sleep(60)
for _ in range(1000):
    state = open(f"/proc/{waiting}/stat").read().split(") ")[1][0]
    if state == "D": break
    time.sleep(0.01)
print(state, flush=True)`;

  test("end with the program", async () => {
    expect(await hostile(python(WAITING))).toMatchObject({ status: null, code: 0, stdout: "D\n" });
  });

  test("end at the time limit", async () => {
    const answer = await hostile(python(`${WAITING}\ntime.sleep(60)`, { run_timeout: RUN_MS }));
    expect(answer).toMatchObject({ ...TIMEOUT, stdout: "D\n" });
  });
});

describe("the stack", () => {
  test("that overflows is a crash of the program", async () => {
    const answer = await hostile(python(FILL_STACK));
    expect(answer).toMatchObject({ stdout: "began\n", status: "SG", code: 139, signal: "SIGSEGV" });
  });

  test("that overflows in a child is the child's alone", async () => {
    const answer = await hostile({ lang: "bash", code: "python3; echo $?", stdin: FILL_STACK });
    expect(answer).toMatchObject({ stdout: "began\n139\n", status: null, code: 0 });
  });

  test("of an interpreter is an ordinary error", async () => {
    expect(await hostile(python("def f(): f()\nf()"))).toMatchObject({ code: 1, status: null });
    const js = await hostile({
      lang: "js",
      code: "const f = () => f(); try { f() } catch (e) { console.log(e.name) }",
    });
    expect(js).toMatchObject({ stdout: "RangeError\n", code: 0 });
  });
});

describe("processor time", () => {
  test("of children, grandchildren and threads is counted, also of those that ended unseen", async () => {
    const code = `
import os, time, threading
def burn():
    end = time.thread_time() + 0.2
    while time.thread_time() < end: pass
if os.fork() == 0:
    if os.fork() == 0: burn(); os._exit(0)
    os._exit(0)
if os.fork() == 0: burn(); os._exit(0)
thread = threading.Thread(target=burn); thread.start(); thread.join()
burn()
for _ in range(2): os.wait()
time.sleep(2)`;
    const answer = await hostile(python(code));
    expect(answer).toMatchObject({ status: null, code: 0 });
    expect(answer.cpu_time).toBeGreaterThanOrEqual(600);
  });
});

describe("what multiplies in good order works as ever:", () => {
  test.each([
    [
      "a pool of processes",
      python(
        "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    with m.Pool(8) as pool: print(sum(pool.map(f, range(1000))))",
      ),
      "332833500\n",
    ],
    [
      "two hundred threads",
      python(
        "import threading\nseen = []\nthreads = [threading.Thread(target=seen.append, args=(n,)) for n in range(200)]\n[t.start() for t in threads]; [t.join() for t in threads]\nprint(len(seen))",
      ),
      "200\n",
    ],
    [
      "subprocesses of asyncio",
      python(
        "import asyncio\nasync def one(n):\n    p = await asyncio.create_subprocess_exec('echo', str(n), stdout=-1)\n    return int((await p.communicate())[0])\nasync def main(): print(sum(await asyncio.gather(*map(one, range(20)))))\nasyncio.run(main())",
      ),
      "190\n",
    ],
    ["a pipeline of twenty", { lang: "bash", code: `seq 1000 ${"| cat ".repeat(20)}| tail -1` }, "1000\n"],
    [
      "children of Node",
      {
        lang: "js",
        code: `const {execFile}=require("child_process");let n=0;for(let i=0;i<20;i++)execFile("echo",[String(i)],(e,out)=>{n+=Number(out);if(i>=0&&++done===20)console.log(n)});var done=0`,
      },
      "190\n",
    ],
    [
      "workers of Node",
      {
        lang: "js",
        code: `const {Worker}=require("worker_threads");let n=0,d=0;for(let i=0;i<4;i++)new Worker("require('worker_threads').parentPort.postMessage(7)",{eval:true}).on("message",m=>{n+=m;if(++d===4)console.log(n)})`,
      },
      "28\n",
    ],
    [
      "a thousand children, one after the other",
      { lang: "bash", code: "for n in $(seq 1000); do (exit 3); done; echo $?" },
      "3\n",
    ],
    [
      "GNU parallel work by xargs",
      { lang: "bash", code: "seq 100 | xargs -P 16 -I{} sh -c 'echo {}' | sort -n | tail -1" },
      "100\n",
    ],
  ])("%s", async (_name, program, stdout) => {
    expect(await bystander.exec(program)).toMatchObject({ stdout, stderr: "", code: 0, status: null });
  });
});
