import {
  descendants,
  groupCpuUs,
  groupIsFrozen,
  isAlive,
  killProcess,
  until,
  wakeups,
} from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, bytesOf, paused, runOpen, settled, started } from "@svc/test-kit/jail/run";
import { slow, times } from "@svc/test-kit/jail/slowness";
import { afterEach, describe, expect, it } from "vitest";

let jaild: Jaild;
afterEach(() => jaild.stop());

const python = (program: string) => ["/usr/bin/python3", "-c", program];
const shell = (script: string) => ["/bin/bash", "-c", script];
const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const BUSY = shell("while :; do :; done");

describe("a paused program", () => {
  it("uses no processor, wakes nobody, and has no time limit", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const run = await started(jaild, { argv: BUSY, limits: { wallMs: slow(2000) } });
    const [keeper = 0] = jaild.keepers;
    await settled(run, "running");
    const pause = await paused(run);
    expect(pause.wallUs).toBeLessThan(slow(2_000_000));
    const before = { cpu: groupCpuUs(jaild.group), wakeups: wakeups(keeper) };
    await pass(2000);
    expect(groupCpuUs(jaild.group) - before.cpu).toBeLessThan(1000);
    expect(wakeups(keeper) - before.wakeups).toBeLessThanOrEqual(1);
    run.resume(0);
    const { end } = await run.outcome();
    expect(end.cause).toBe("wall_limit");
    expect(end.wallUs).toBeGreaterThanOrEqual(slow(2_000_000));
    expect(end.wallUs).toBeLessThan(slow(2_000_000) + 1_500_000);
    run.close();
  });

  it("has a new limit afterwards when it is given one", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const run = await started(jaild, { argv: BUSY, limits: { wallMs: slow(20_000) } });
    const pause = await paused(run);
    run.resume(300);
    const { end } = await run.outcome();
    expect(end.cause).toBe("wall_limit");
    expect(end.wallUs - pause.wallUs).toBeGreaterThanOrEqual(300_000);
    expect(end.wallUs - pause.wallUs).toBeLessThan(300_000 + slow(2_000_000));
    run.close();
  });

  it("goes on counting its processor time against the one limit", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const run = await started(jaild, { argv: BUSY, limits: { cpuMs: slow(400) } });
    const seen: number[] = [];
    for (let i = 0; i < 3; i++) {
      await until(() => groupCpuUs(jaild.group) > (i + 1) * slow(100_000), "it has run");
      seen.push((await paused(run)).cpuUs);
      run.resume(0);
    }
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    const { end } = await run.outcome();
    expect(end.cause).toBe("cpu_limit");
    expect(end.cpuUs).toBeLessThan(slow(800_000));
    run.close();
  });

  it("sleeps on across a pause, and its timers come due", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const program = `import time, signal, asyncio
fired = []
signal.signal(signal.SIGALRM, lambda *_: fired.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.3)
start = time.monotonic(); time.sleep(2.5); print(time.monotonic() - start >= 2.5, len(fired))
asyncio.run(asyncio.sleep(0.1)); print("end")`;
    const run = await started(jaild, { argv: python(program) });
    await settled(run, "waiting");
    const pause = await paused(run);
    await pass(2600);
    run.resume(0);
    const outcome = await run.outcome();
    expect(outcome.stdout.toString()).toBe("True 1\nend\n");
    expect(outcome.end.wallUs - pause.wallUs).toBeLessThan(slow(2_000_000));
    run.close();
  });

  it("has its output told once, in order, at the pause and at the end", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const script = "echo one; echo err >&2; mkfifo f; read x < f & wait; echo never";
    const run = await started(jaild, { argv: shell(script) });
    await settled(run, "blocked");
    const first = await paused(run);
    expect([first.stdout.toString(), first.stderr.toString()]).toEqual(["one\n", "err\n"]);
    expect([first.stdoutTotal, first.stderrTotal]).toEqual([4, 4]);
    run.resume(200);
    const outcome = await run.outcome();
    expect([outcome.stdout.toString(), outcome.stderr.toString()]).toEqual(["one\n", "err\n"]);
    run.close();
  });

  it("holds what was staged for it and what it wrote, each once", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const size = 64 << 20;
    for (const [staged, written] of [
      [size, 0],
      [0, size],
      [size, size],
    ] as const) {
      const script = `head -c ${written} /dev/zero > own; mkfifo f; read x < f & wait`;
      const run = await started(jaild, { argv: shell(script), files: { staged: Buffer.alloc(staged) } });
      await settled(run, "blocked");
      const holds = staged + written;
      const { memory } = await paused(run);
      expect(memory).toBeGreaterThanOrEqual(holds);
      expect(memory).toBeLessThan(holds + size / 4);
      run.close();
    }
  });

  it("may have been in the middle of anything", async () => {
    jaild = await Jaild.start({ slots: 2 });
    const programs: Record<string, string[]> = {
      "a fork bomb": shell("f() { f | f & f; }; f"),
      "endless forks": python("import os\nwhile True:\n  if os.fork() == 0: os._exit(0)\n  os.wait()"),
      "an output flood": shell("yes"),
      "stopped children": python(
        "import os, signal\nfor _ in range(5):\n  if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\nwhile True: pass",
      ),
      vfork: python(
        "import ctypes, subprocess\nwhile True: subprocess.run(['/bin/true'], close_fds=False, preexec_fn=None)",
      ),
      "a parent of a child that was vforked and stays": python(
        "import ctypes\nl = ctypes.CDLL(None)\nif l.syscall(58) == 0:\n  while True: pass",
      ),
      threads: python(
        "import threading\ndef f():\n  while True: open('x', 'w').write('x' * 10000)\nfor _ in range(30): threading.Thread(target=f).start()",
      ),
      "memory that grows": python(
        "x = []\nwhile len(x) < 300: x.append(bytearray(1 << 20))\nwhile True: pass",
      ),
    };
    for (const [name, argv] of Object.entries(programs)) {
      const run = await started(jaild, { argv, limits: { processes: 60, killFactor: 0 } });
      for (let i = 0; i < times(10); i++) {
        await paused(run).catch((error: unknown) => {
          throw new Error(`${name}: ${error}`);
        });
        const slot = run.slot;
        // The kernel says that all are frozen before the last one has left its processor.
        await pass(5);
        const cpu = groupCpuUs(jaild.group, slot);
        await pass(20);
        expect(groupCpuUs(jaild.group, slot), name).toBe(cpu);
        run.resume(0);
        await pass(10);
      }
      run.close();
    }
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("is paused and continued two hundred times without harm", async () => {
    jaild = await Jaild.start({ slots: 1 });
    // Seconds of work, so that it outlasts the pauses on a machine that does other work.
    const program = `import hashlib\nh = b''\nfor _ in range(${times(3_000_000)}): h = hashlib.sha256(h).digest()\nprint(h.hex())`;
    const plain = await bash(jaild, `python3 -c "${program}"`);
    const run = await started(jaild, { argv: python(program) });
    const spent: number[] = [];
    for (let i = 0; i < times(200); i++) {
      const from = performance.now();
      if ((await run.pause()) === undefined) break;
      run.resume(0);
      spent.push(performance.now() - from);
    }
    expect(spent.length).toBeGreaterThan(times(200) / 4);
    expect(spent.sort((a, b) => a - b)[spent.length >> 1]).toBeLessThan(slow(10));
    expect((await run.outcome()).stdout.toString()).toBe(plain.out);
    run.close();
  });

  it("leaves its place among the ready jails to another, up to the number of slots", async () => {
    jaild = await Jaild.start({ slots: 3, ready: 1 });
    await jaild.full();
    const runs = [];
    for (let i = 0; i < 2; i++) {
      const run = await started(jaild, { argv: shell("read x < /dev/zero") });
      expect(jaild.keepers.length).toBe(i + 1);
      await paused(run);
      await until(() => jaild.keepers.length === i + 2, "another jail is made ready");
      runs.push(run);
    }
    expect((await bash(jaild, "echo plain")).out).toBe("plain\n");
    const last = await started(jaild, { argv: BUSY });
    await paused(last);
    await pass(50);
    expect(jaild.keepers.length).toBe(3);
    for (const run of [...runs, last]) run.close();
    await jaild.full();
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });
});

describe("a program that has ended, whose client keeps the jail", () => {
  it("leaves its place among the ready jails to another until the client fetches a file", async () => {
    jaild = await Jaild.start({ slots: 3, ready: 1 });
    await jaild.full();
    const kept = [];
    for (let i = 0; i < 2; i++) {
      const { run } = await runOpen(jaild, { argv: shell("echo made > out") });
      await until(() => jaild.keepers.length === i + 2, "another jail is made ready");
      kept.push(run);
    }
    expect((await bash(jaild, "echo plain")).out).toBe("plain\n");
    for (const run of kept) {
      expect((await bytesOf(run, 0))?.toString()).toBe("made\n");
      run.close();
    }
    await jaild.full();
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });
});

describe("the end of a paused program", () => {
  const family = shell("sleep 100 & setsid sleep 100 & while :; do :; done");

  async function standing() {
    const run = await started(jaild, { argv: family });
    const [keeper = 0] = jaild.keepers;
    await until(() => descendants(keeper).length >= 4, "the program has children");
    await paused(run);
    return { run, keeper, pids: descendants(keeper) };
  }

  it("comes when the client leaves", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const { run, pids } = await standing();
    run.close();
    await until(() => pids.every((pid) => !isAlive(pid)), "all processes are dead");
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("comes when its keeper is killed", async () => {
    jaild = await Jaild.start({ slots: 2, ready: 1 });
    const { run, keeper, pids } = await standing();
    await until(() => jaild.keepers.length === 2, "its place is taken");
    killProcess(keeper);
    await expect(run.outcome()).rejects.toMatchObject({ kind: "gone", started: true });
    await until(() => pids.every((pid) => !isAlive(pid)), "all processes are dead");
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("comes when jaild ends", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const { pids } = await standing();
    await jaild.kill("SIGTERM");
    expect(pids.filter(isAlive)).toEqual([]);
    expect(jaild.groups).toEqual([]);
  });

  it("comes when the master is killed", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const { pids } = await standing();
    await jaild.kill("SIGKILL");
    await until(() => pids.every((pid) => !isAlive(pid)), "all processes are dead");
    await jaild.restart();
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("comes at the latest with the next start, when master and keeper are killed", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const { keeper, pids } = await standing();
    process.kill(jaild.pid, "SIGSTOP");
    killProcess(keeper);
    await jaild.kill("SIGKILL");
    await jaild.restart();
    await until(() => pids.every((pid) => !isAlive(pid)), "all processes are dead");
    expect(groupIsFrozen(jaild.group)).toBe(false);
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });
});
