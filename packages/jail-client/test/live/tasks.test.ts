import { readFileSync } from "node:fs";
import { descendants, isAlive, killProcess, until, wakeups } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { paused, settled, started } from "@svc/test-kit/jail/run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TaskState } from "../../src/index.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 2 });
});
afterAll(() => jaild.stop());

const python = (program: string) => ["/usr/bin/python3", "-c", program];
const bash = (script: string) => ["/bin/bash", "-c", script];
const SOCKET = "import os, select, signal, socket, threading, time\na, b = socket.socketpair()\n";
const stateOf = (pid: number) => /^State:\t(.)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];

describe("what a program does is told from its tasks", () => {
  it.each<[string, TaskState, string[]]>([
    ["a busy loop", "running", bash("while :; do :; done")],
    ["a sleep", "waiting", ["/bin/sleep", "1000"]],
    ["a read of a socket", "blocked", python(`${SOCKET}a.recv(1)`)],
    ["a read of a socket, with a timeout", "waiting", python(`${SOCKET}a.settimeout(1000); a.recv(1)`)],
    ["select without a timeout", "blocked", python(`${SOCKET}select.select([a], [], [])`)],
    ["select with one", "waiting", python(`${SOCKET}select.select([a], [], [], 1000)`)],
    [
      "poll without a timeout",
      "blocked",
      python(
        `${SOCKET}p = select.poll(); p.register(b); p.poll() and p.unregister(b); p.register(a, 1); p.poll()`,
      ),
    ],
    ["poll with one", "waiting", python(`${SOCKET}p = select.poll(); p.register(a, 1); p.poll(1000000)`)],
    [
      "accept",
      "blocked",
      python(`${SOCKET}s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen(); s.accept()`),
    ],
    ["a lock", "blocked", python("import threading\nl = threading.Lock(); l.acquire(); l.acquire()")],
    [
      "a lock with a timeout",
      "waiting",
      python("import threading\nl = threading.Lock(); l.acquire(); l.acquire(timeout=1000)"),
    ],
    ["a wait for a signal", "blocked", python(`${SOCKET}signal.pause()`)],
    [
      "sigwait",
      "blocked",
      python(`${SOCKET}signal.pthread_sigmask(signal.SIG_BLOCK, [10]); signal.sigwait([10])`),
    ],
    ["a FIFO that nobody opens", "blocked", bash("mkfifo f; read x < f")],
    ["bash that waits for such a job", "blocked", bash("mkfifo f; (read x < f) & (read y < f) & wait")],
    ["a pipe whose writer sleeps", "waiting", bash("sleep 1000 | cat")],
    ["a pipe whose writer runs", "running", bash("(while :; do :; done) | cat")],
    [
      "a file lock",
      "blocked",
      python(`${SOCKET}import fcntl
f = open("f", "w"); fcntl.flock(f, 2)
if os.fork() == 0: fcntl.flock(open("f", "w"), 2)
os.wait()`),
    ],
    [
      "fifty threads that all wait",
      "blocked",
      python(`${SOCKET}for _ in range(50): threading.Thread(target=a.recv, args=(1,)).start()`),
    ],
    [
      "threads of which one spins",
      "running",
      python(`${SOCKET}def spin():
  while True: pass
threading.Thread(target=spin).start(); a.recv(1)`),
    ],
    [
      "an asyncio loop that waits for a future",
      "blocked",
      python(
        "import asyncio\nasync def main(): await asyncio.get_running_loop().create_future()\nasyncio.run(main())",
      ),
    ],
    [
      "an asyncio loop with a timer",
      "waiting",
      python("import asyncio\nasync def main(): await asyncio.sleep(1000)\nasyncio.run(main())"),
    ],
    [
      "a child that was stopped",
      "blocked",
      python(`${SOCKET}pid = os.fork()
if pid == 0:
  while True: pass
os.kill(pid, signal.SIGSTOP); os.waitpid(pid, 0)`),
    ],
    [
      "a child that nobody reaps",
      "blocked",
      python(`${SOCKET}if os.fork() == 0: os._exit(0)
a.recv(1)`),
    ],
    [
      "a name that looks like a state",
      "blocked",
      python(`${SOCKET}import ctypes
ctypes.CDLL(None).prctl(15, b"x) R 1 2 (y"); a.recv(1)`),
    ],
    [
      "a program that would hide from debuggers",
      "blocked",
      python(`${SOCKET}import ctypes
ctypes.CDLL(None).prctl(4, 0); a.recv(1)`),
    ],
  ])("%s: %s", async (_name, state, argv) => {
    const run = await started(jaild, { argv });
    try {
      await settled(run, state);
      // a pause interrupts what is waited for: it is waited for again, as it was
      await paused(run);
      run.resume(0);
      // the kernel keeps the rest of some waits in a form that does not tell whether there is a limit
      if (state !== "blocked") await settled(run, state);
      else expect(await run.query()).not.toBeUndefined();
    } finally {
      run.close();
    }
  });

  it("is one of threads that hand on a token and sleep in turn: never blocked for good", async () => {
    const program = `${SOCKET}
def other():
    while True: b.send(b.recv(1))
threading.Thread(target=other).start()
while True: a.send(b"x"); a.recv(1)`;
    const run = await started(jaild, { argv: python(program) });
    await settled(run, "running");
    for (let i = 0; i < 300; i++) expect(await run.query()).toBe("running");
    run.close();
  });

  it.each<[string, TaskState | "paused", string[]]>([
    ["a busy loop", "running", bash("while :; do :; done")],
    ["a sleep", "waiting", ["/bin/sleep", "1000"]],
    ["a read of a socket", "paused", python(`${SOCKET}print("out", flush=True); a.recv(1)`)],
  ])(
    "decides whether it is paused where only something else could move it: %s",
    async (_name, what, argv) => {
      const run = await started(jaild, { argv });
      await settled(run, what === "paused" ? "blocked" : what);
      const found = await run.pauseIfBlocked();
      if (what !== "paused") {
        expect([found, await run.query()]).toEqual([what, what]);
      } else {
        expect(found).toMatchObject({ stdoutTotal: 4, stdout: Buffer.from("out\n") });
        run.resume(0);
        expect(await run.query()).not.toBeUndefined();
      }
      run.close();
    },
  );

  it("has an end: the answer to a question after it is that there is none, and the outcome is whole", async () => {
    const run = await started(jaild, { argv: bash("echo out; exit 3") });
    const outcome = await run.outcome();
    expect(await run.query()).toBeUndefined();
    expect(await run.pause()).toBeUndefined();
    expect(await run.pauseIfBlocked()).toBeUndefined();
    expect(outcome.end.exitCode).toBe(3);
    expect(outcome.stdout.toString()).toBe("out\n");
    run.close();
  });

  it.each(["pause", "pauseIfBlocked"] as const)(
    "has an end as soon as its process is dead, also when the first process of its jail has not seen that: %s",
    async (ask) => {
      const run = await started(jaild, { argv: ["/bin/sleep", "1000"] });
      const keeper = jaild.keepers.find((each) => descendants(each).length === 2) ?? 0;
      const [init = 0, program = 0] = descendants(keeper);
      process.kill(init, "SIGSTOP");
      try {
        await until(() => stateOf(init) === "T", "the first process stands still");
        killProcess(program);
        await until(() => !isAlive(program), "the program is dead");
        const seen = wakeups(keeper);
        const answer = run[ask]();
        // It wakes for the question, and then to look at the counters of a run that goes on.
        await Promise.race([answer, until(() => wakeups(keeper) > seen + 4, "its keeper was asked")]);
        process.kill(init, "SIGCONT");
        expect(await answer).toBeUndefined();
        expect((await run.outcome()).end).toMatchObject({ cause: "signaled", signal: 9 });
      } finally {
        run.close();
      }
    },
  );

  it("may end while it is asked: every question has an answer, and files can be fetched", async () => {
    for (let round = 0; round < 20; round++) {
      const run = await started(jaild, { argv: bash(`echo x > f; sleep 0.00${round % 10}`) });
      for (let answer: TaskState | undefined = "running"; answer !== undefined; ) {
        answer = await run.query();
        if (round % 3 === 0 && typeof (await run.pauseIfBlocked()) === "object") run.resume(0);
        if (round % 2 === 0 && (await run.pause()) !== undefined) run.resume(0);
      }
      expect((await run.outcome()).end).toMatchObject({ cause: "exited", exitCode: 0 });
      expect(await run.fetch(0)).toMatchObject({ size: 2 });
      run.close();
    }
  });

  it("costs little, also with 250 tasks and ten thousand questions", async () => {
    const program = `${SOCKET}
for _ in range(250): threading.Thread(target=a.recv, args=(1,)).start()`;
    const run = await started(jaild, { argv: python(program) });
    await settled(run, "blocked");
    const times: number[] = [];
    for (let i = 0; i < 10; i++) {
      const asked = performance.now();
      await run.query();
      times.push(performance.now() - asked);
    }
    expect(Math.min(...times)).toBeLessThan(50);
    run.close();
    const one = await started(jaild, { argv: python(`${SOCKET}a.recv(1)`) });
    await settled(one, "blocked");
    for (let i = 0; i < 10_000; i++) expect(await one.query()).toBe("blocked");
    expect((await paused(one)).cpuUs).toBeLessThan(1_000_000);
    one.close();
  });
});
