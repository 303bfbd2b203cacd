import { execFileSync, spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { availableParallelism } from "node:os";
import { buildFaulty, Faults } from "@svc/test-kit/jail/faults";
import { childrenOf, descendants, descriptors, isAlive, killProcess, until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, LIMITS } from "@svc/test-kit/jail/run";
import { SLOWNESS, times } from "@svc/test-kit/jail/slowness";
import { describePython, finishPython, openPython, runPython } from "@svc/test-kit/jail/warm";
import { NAMES } from "@svc/test-kit/jail/zygotes";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { JailError, JailRun } from "../../src/index.ts";
import { seenByHost } from "../support/confinement.ts";

let jaild: Jaild;
afterEach(() => jaild.stop());

async function start(options: Parameters<typeof Jaild.start>[0] = {}) {
  jaild = await Jaild.start({ slots: 2, zygotes: ["python"], ...options });
  await jaild.warm();
}

const main = (source: string) => ({ files: { "main.py": source } });
const random = main(
  "import os, random, secrets, tempfile, uuid, multiprocessing.process as p\nprint(random.random(), secrets.token_hex(4), uuid.uuid4(), tempfile.mktemp(), p.current_process().authkey.hex())",
);
const numpy = main(
  "import numpy as np, random\nprint(np.random.rand(), np.random.default_rng().random(), random.random())",
);
const hash = main("print(hash('text'))");

const NANOSLEEP = process.arch === "arm64" ? "115 " : "230 ";
/** In clock_nanosleep(2); before, its interpreter may still be changing what it does with signals. */
const isSleeping = (pid: number) => readFileSync(`/proc/${pid}/syscall`, "utf8").startsWith(NANOSLEEP);

/** Starts a program that sleeps; answers its process as the host numbers it. */
async function sleeping(zygote: string | undefined) {
  const run = await openPython(jaild, zygote);
  await describePython(run, main("import time\nprint('asleep', flush=True)\ntime.sleep(60)"));
  await run.start();
  const keeper = jaild.keepers.find((pid) => descendants(pid).length === 2);
  const [init = 0, program = 0] = descendants(keeper);
  await until(() => isSleeping(program), "the program sleeps");
  return { run, init, program };
}

describe("the process of a program that started warm, as the host sees it", () => {
  it.each(NAMES)(
    "%s: a child of the jail's pid 1, with its namespaces, groups, user and filter",
    async (name) => {
      await start({ slots: 1, zygotes: true });
      const cold = await sleeping(undefined);
      const expected = seenByHost(cold.program);
      // The zygote's own is below the one of programs.
      expected.status = expected.status.map((line) => line.replace(/^(Seccomp_filters:\t)2$/, "$13"));
      cold.run.close();
      await until(() => !isAlive(cold.init), "the jail is gone");
      await jaild.full();
      const { run, init, program } = await sleeping(name);
      expect(seenByHost(program)).toEqual(expected);
      expect(childrenOf(init)).toEqual([program]);
      for (const kind of ["mnt", "pid", "net", "ipc", "uts", "user", "cgroup"]) {
        const own = readlinkSync(`/proc/${program}/ns/${kind}`);
        expect([kind, own]).toEqual([kind, readlinkSync(`/proc/${init}/ns/${kind}`)]);
        for (const zygote of jaild.zygotes) expect(own).not.toBe(readlinkSync(`/proc/${zygote}/ns/${kind}`));
      }
      run.close();
    },
  );

  it("shares no writable memory and no file with anything", async () => {
    await start();
    const { run, program } = await sleeping("python");
    const shared = readFileSync(`/proc/${program}/maps`, "utf8")
      .split("\n")
      .filter((line) => /^\S+ .w.s/.test(line));
    expect(shared).toEqual([]);
    expect(readdirSync(`/proc/${program}/fd`)).toEqual(["0", "1", "2"]);
    run.close();
  });
});

describe("a zygote", () => {
  it("has two capabilities, a read-only root, no network and no file but its own", async () => {
    await start({ zygotes: true });
    expect(jaild.zygotes).toHaveLength(NAMES.length);
    for (const pid of jaild.zygotes) {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      for (const set of ["CapPrm", "CapEff", "CapBnd"])
        expect(status).toMatch(new RegExp(`^${set}:\t0000000000240000$`, "m"));
      expect(status).toMatch(/^NoNewPrivs:\t1$/m);
      expect(readdirSync(`/proc/${pid}/root/proc`)).toEqual([]);
      const mounts = readFileSync(`/proc/${pid}/mounts`, "utf8").trim().split("\n");
      const roots = mounts.filter((line) => line.split(" ")[1] === "/");
      expect(roots).toHaveLength(1);
      expect(roots[0]).toContain(" ro,");
      const links = readFileSync(`/proc/${pid}/net/dev`, "utf8").trim().split("\n").slice(2);
      expect(links.filter((line) => !/^\s*lo:/.test(line))).toEqual([]);
      expect(descriptors(pid)).toBeLessThan(16);
    }
  });

  it("gives each program random numbers, names and keys of its own", async () => {
    await start({ zygotes: true });
    const jobs = [...NAMES.map((name) => [name, random] as const), ["python-data", numpy] as const];
    for (const [name, job] of jobs) {
      const outs: string[][] = [];
      for (let i = 0; i < 3; i++) outs.push((await runPython(jaild, name, job)).out.trim().split(" "));
      expect(outs[0]?.length).toBeGreaterThanOrEqual(3);
      for (let i = 0; i < (outs[0]?.length ?? 0); i++)
        expect(new Set(outs.map((out) => out[i])).size, `${name} ${i}`).toBe(3);
    }
  });

  it("is unchanged by what its copies do", async () => {
    await start();
    const hostile =
      "import builtins, json, os, random, sys, signal, warnings\nbuiltins.print = None; json.dumps = None; os.environ['X'] = '1'; sys.path.clear(); random.seed(1)\nsignal.signal(signal.SIGTERM, lambda *a: None); warnings.filters.clear(); sys.modules.clear()";
    await runPython(jaild, "python", main(hostile));
    const next = await runPython(
      jaild,
      "python",
      main(
        "import json, os, signal, sys\nprint(json.dumps([1]), 'X' in os.environ, '/usr/lib/python3/dist-packages' in sys.path, signal.getsignal(15))",
      ),
    );
    expect(next).toMatchObject({ out: "[1] False True 0\n", err: "", startedWarm: true });
  });

  it("cannot be reached from a copy", async () => {
    await start();
    const zygotes = jaild.zygotes;
    const { out } = await runPython(
      jaild,
      "python",
      main(`import os
print(os.getppid(), [p for p in os.listdir("/proc") if p.isdigit()], len(open("/proc/net/unix").readlines()))
for pid in range(3, 70000):
    try: os.kill(pid, 9); print("killed", pid)
    except OSError: pass`),
    );
    expect(out).toBe("1 ['1', '2'] 1\n");
    expect(zygotes.every(isAlive)).toBe(true);
  });

  it("that is killed is replaced; meanwhile programs start cold, and what waited goes on", async () => {
    await start({ slots: 3 });
    const waiting = await openPython(jaild, "python");
    for (const pid of jaild.zygotes) killProcess(pid);
    await until(() => jaild.log.includes("the zygote python died"), "the master knows");
    const next = await JailRun.open(jaild.socket, new AbortController().signal);
    await next.warm("python");
    await describePython(next, main("print('next')"));
    expect(await finishPython(next)).toMatchObject({ out: "next\n" });
    await describePython(waiting, main("print('waited')"));
    expect(await finishPython(waiting)).toMatchObject({ out: "waited\n", startedWarm: true });
    await jaild.warm(2);
    expect(await runPython(jaild, "python", main("print(1)"))).toMatchObject({ startedWarm: true });
  });

  it("is replaced after a number of copies, by one with another hash seed", async () => {
    await start({ args: ["--zygote-copies", "2"] });
    const first = await runPython(jaild, "python", hash);
    expect((await runPython(jaild, "python", hash)).out).toBe(first.out);
    await jaild.warm(2);
    expect((await runPython(jaild, "python", hash)).out).not.toBe(first.out);
  });

  it("tells its hash seed, with which a program with that seed starts warm and without which it starts cold", async () => {
    await start({ zygotes: true });
    const code = "import os, subprocess, sys\nchild = [sys.executable, '-c', \"print(hash('a'))\"]\n";
    const job = main(
      `${code}print(hash('a'), os.environ['PYTHONHASHSEED'], subprocess.run(child, capture_output=True, text=True).stdout)`,
    );
    const finish = async (zygote: string | undefined, seedOf: (told: number) => number) => {
      const run = await openPython(jaild, zygote);
      const seed = seedOf(run.zygoteWord ?? 0);
      await describePython(run, { ...job, env: { PYTHONHASHSEED: String(seed) } });
      const { out, startedWarm } = await finishPython(run);
      const [own, shown, childs] = out.trim().split(/\s+/);
      expect({ shown, childs }).toEqual({ shown: String(seed), childs: own });
      return { out, startedWarm, seed };
    };
    for (const name of NAMES) {
      const warm = await finish(name, (told) => told);
      expect(warm.startedWarm).toBe(true);
      expect(await finish(undefined, () => warm.seed)).toMatchObject({ out: warm.out, startedWarm: false });
      expect(await finish(name, (told) => (told === 1 ? 2 : told - 1))).toMatchObject({ startedWarm: false });
    }
  });

  it("is replaced after a time", async () => {
    await start({ args: ["--zygote-age-ms", "1500"] });
    const before = jaild.zygotes;
    await until(() => !before.some(isAlive), "the first ones are gone", 60_000);
    await jaild.warm(2);
    expect(await runPython(jaild, "python", main("print(1)"))).toMatchObject({ out: "1\n" });
  });

  it("goes with the master, as does what waits", async () => {
    await start();
    const waiting = await openPython(jaild, "python");
    const all = [...descendants(jaild.pid), ...jaild.zygotes];
    await jaild.kill("SIGKILL");
    await until(() => all.every((pid) => !isAlive(pid)), "all are dead");
    waiting.close();
    await jaild.restart();
    await jaild.stop();
    expect(jaild.groups).toEqual([]);
  });
});

describe("a jail that waits warm", () => {
  it.each([
    ["its client leaves", -1],
    ["its first process dies", 0],
    ["its program's process dies", 1],
  ])("is gone when %s", async (_what, depth) => {
    await start({ slots: 1 });
    const run = await openPython(jaild, "python");
    const below = descendants(jaild.keepers[0]);
    expect(below).toHaveLength(2);
    const gone = new Promise<void>((resolve) => run.onGone(resolve));
    if (depth === -1) run.close();
    else killProcess(below[depth]);
    await gone;
    await until(() => below.every((pid) => !isAlive(pid)), "the jail is dead");
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("takes any job, and starts it anew when it is none of its own", async () => {
    await start();
    const run = await openPython(jaild, "python");
    const script = "echo $0 $$ $PPID; ls /proc/self/fd | wc -l; kill -l PIPE; kill -PIPE $$";
    run.describe(["/bin/bash", "-c", script], ["PATH=/usr/bin"], LIMITS);
    expect(await finishPython(run)).toMatchObject({
      out: "/bin/bash 2 1\n4\n13\n",
      signal: 13,
      startedWarm: false,
    });
  });

  // An emulated processor has no time left for a zygote that runs only when nobody else does.
  it.skipIf(SLOWNESS > 1)(
    "ends as it does when its zygote, which holds the jail's descriptors too, comes later",
    async () => {
      await start();
      // Before the zygote and after everything else: it gets a few percent of a processor, milliseconds late.
      const others = Array.from({ length: availableParallelism() }, () =>
        spawn("nice", ["-n", "10", "/bin/sh", "-c", "while :; do :; done"]),
      );
      try {
        // Copies are not put back themselves: --reset-on-fork.
        for (const pid of jaild.zygotes) execFileSync("chrt", ["-R", "-i", "-p", "0", `${pid}`]);
        for (let i = 0; i < times(10); i++)
          expect(await runPython(jaild, "python", main("print(1)"))).toMatchObject({
            out: "1\n",
            exitCode: 0,
          });
      } finally {
        for (const { pid } of others) killProcess(pid);
      }
    },
  );

  it("is charged for the memory of its copy, whatever its program takes", async () => {
    await start({ slots: 1 });
    for (let number = 0; number < 3; number++) {
      await jaild.full();
      const run = await openPython(jaild, "python");
      await describePython(run, main(""));
      await run.start();
      const { end } = await run.outcome();
      run.close();
      expect(end.memoryPeak).toBeGreaterThan(200_000);
      expect(end.memoryPeak).toBeLessThan(20_000_000);
    }
  });

  it("of an unknown zygote is an ordinary one", async () => {
    await start();
    const run = await JailRun.open(jaild.socket, new AbortController().signal);
    expect(await run.warm("nothing")).toBe(false);
    await describePython(run, main("print(1)"));
    expect(await finishPython(run)).toMatchObject({ out: "1\n", startedWarm: false });
  });
});

describe("a call of a copy that fails", () => {
  beforeAll(buildFaulty, 120_000);
  const CALLS = 300;

  it("each in turn: no run, or a whole one, and the slot comes back", async () => {
    const faults = Faults.plan({ role: "none", tickets: 0 });
    try {
      await start({ slots: 1, ...faults.options });
      const program = { files: { "main.py": "print(open('/proc/self/status').read())" } };
      const status = /^CapBnd:\t0+\n.*\n(NoNewPrivs:\t1)\n(Seccomp:\t2)\n(Seccomp_filters:\t\d+)\n/m;
      const refusals: unknown[] = [];
      let startedWarm = 0;
      for (let call = 1; call <= CALLS; call++) {
        try {
          const way = await runPython(jaild, "python", program);
          expect(way).toMatchObject({ cause: "exited", exitCode: 0 });
          expect(way.out, `call ${call}`).toMatch(status);
          startedWarm = way.startedWarm ? startedWarm + 1 : 0;
        } catch (error) {
          if (!(error instanceof JailError)) throw error;
          refusals.push(`${call} ${error.kind} ${error.started}`);
          startedWarm = 0;
        }
        expect((await bash(jaild, "echo next")).out).toBe("next\n");
      }
      // The last copies made fewer calls than they may.
      expect(startedWarm).toBeGreaterThan(3);
      expect(refusals.length).toBeGreaterThan(25);
      expect(refusals.filter((text) => !/^\d+ (setup|gone|internal) false$/.test(`${text}`))).toEqual([]);
      const told = [
        "enter the jail",
        "set no_new_privs",
        "drop all capabilities",
        "load the system call policy",
      ];
      for (const step of told) expect(jaild.log).toContain(step);
    } finally {
      faults.remove();
    }
  }, 120_000);
});
