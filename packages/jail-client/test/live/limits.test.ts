import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { childrenOf, descendants, until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, runJob } from "@svc/test-kit/jail/run";
import { slow } from "@svc/test-kit/jail/slowness";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const MIB = 1 << 20;
/** Time for so many processes, which share one processor with the one that starts them, on a machine that does other work. */
const MANY = 20;
const SPIN_MS = slow(5000);
let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({
    args: [
      "--workspace-bytes",
      `${64 * MIB}`,
      "--workspace-inodes",
      "1000",
      "--tmp-bytes",
      `${16 * MIB}`,
      "--shm-bytes",
      `${16 * MIB}`,
    ],
  });
});
afterAll(() => jaild.stop());

const python = (program: string, limits = {}) =>
  runJob(jaild, { argv: ["/usr/bin/python3", "-c", program], limits });

/** How long it takes on this machine now to end as many processes that spin on one processor. */
function msToEndSpinning(): number {
  const program = `import os, signal, time
cpu = max(os.sched_getaffinity(0))
children = []
for _ in range(250):
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {cpu})
        while True: pass
    children.append(child)
time.sleep(0.5)
began = time.monotonic()
for child in children: os.kill(child, signal.SIGKILL)
for child in children: os.waitpid(child, 0)
print((time.monotonic() - began) * 1000)`;
  return Number(execFileSync("/usr/bin/python3", ["-c", program], { encoding: "utf8" }));
}

describe("time", () => {
  it("ends a run at its wall limit", async () => {
    const { end } = await bash(jaild, "sleep 30", { limits: { wallMs: 1500 } });
    expect(end.cause).toBe("wall_limit");
    expect(end.wallUs).toBeGreaterThanOrEqual(1_500_000);
    expect(end.wallUs).toBeLessThan(slow(15_000_000));
  });

  it("ends a run that ignores every signal, stops itself, and detaches", async () => {
    const program = `import os, signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(100)
        os._exit(0)
os.kill(0, signal.SIGSTOP)`;
    const { end } = await python(program, { wallMs: 700 });
    expect(end).toMatchObject({ cause: "wall_limit" });
    expect(end.wallUs).toBeGreaterThanOrEqual(700_000);
    expect(end.wallUs).toBeLessThan(slow(7_000_000));
  });

  it("ends many processes that spin, when they slow the jail's first process and when it gets no processor", async () => {
    const spin = `import os
cpu = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
slowed = []
for slow in (lambda: os.sched_setaffinity(1, {cpu}), lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)),
    lambda: os.sched_setparam(1, os.sched_param(0)), lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
    lambda: os.setpriority(os.PRIO_PGRP, 1, 19), lambda: os.setpriority(os.PRIO_USER, 0, 19),
    lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19)):
    try: slow(); slowed.append(1)
    except PermissionError: pass
print(slowed, flush=True)
for _ in range(250):
    if os.fork() == 0:
        while True: pass
while True: pass`;
    const single = await Jaild.start({ slots: 1 });
    try {
      for (const starved of [false, true]) {
        await single.full();
        const [init = 0] = descendants(single.keepers[0]);
        const run = runJob(single, { argv: ["/usr/bin/python3", "-c", spin], limits: { wallMs: SPIN_MS } });
        run.catch(() => undefined);
        const spinning = () => childrenOf(childrenOf(init)[0] ?? init).length >= MANY;
        await until(spinning, "many processes spin", SPIN_MS);
        if (starved) {
          execFileSync("taskset", ["-p", "-c", `${availableParallelism() - 1}`, `${init}`]);
          execFileSync("chrt", ["--idle", "-p", "0", `${init}`]);
        }
        const { end, out } = await run;
        expect(out).toBe("[]\n");
        expect(end.cause).toBe("wall_limit");
        // Beside other work, to end so many processes takes long for anybody.
        expect(end.wallUs / 1000 - SPIN_MS - msToEndSpinning()).toBeLessThan(slow(500));
      }
    } finally {
      await single.stop();
    }
  });
});

describe("output that the operator allows", () => {
  it("is kept, and a client that asks for more is refused", async () => {
    const single = await Jaild.start({ slots: 1, args: ["--stream-bytes", "1000000"] });
    try {
      const limits = { stdoutCap: 1_000_000, stderrCap: 1_000_000 };
      const kept = await bash(single, "head -c 2000000 /dev/zero", { limits });
      expect(kept.stdout.length).toBe(1_000_000);
      for (const stream of ["stdoutCap", "stderrCap"])
        await expect(bash(single, "true", { limits: { ...limits, [stream]: 1_000_001 } })).rejects.toThrow(
          "invalid limits",
        );
    } finally {
      await single.stop();
    }
  });
});

describe("locks on files", () => {
  const locking = (locks: string) =>
    `import fcntl, time\nfile = open("f", "wb")\nfor at in ${locks}: fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * at)\nwhile time.process_time() < 0.4: pass\nprint("fine")`;

  it("end a run that collects them", async () => {
    const { end } = await python(locking("range(1 << 40, 0, -1)"));
    expect(end.cause).toBe("memory_limit");
  });

  it("of one run do not count for another", async () => {
    const runs = await Promise.all([1, 2, 3].map(() => python(locking("range(1500)"))));
    for (const { end, out, err } of runs) {
      expect([out, err]).toEqual(["fine\n", ""]);
      expect(end).toMatchObject({ cause: "exited", exitCode: 0 });
    }
  });
});

describe("disk", () => {
  it("answers a full workspace with ENOSPC, in bytes and in files", async () => {
    const { end, err, files } = await bash(
      jaild,
      "head -c 100M /dev/zero > big; rm big; for i in {1..1100}; do : > f$i; done",
    );
    expect(end).toMatchObject({ cause: "exited", exitCode: 1 });
    expect(err).toMatch(/No space left on device/);
    expect(Object.keys(files).length).toBe(999);
  });

  it("answers a file that grows too large with an ordinary error", async () => {
    const { end, out } = await bash(jaild, "head -c 2M /dev/zero > f; echo $?; stat -c %s f", {
      limits: { fileBytes: MIB },
    });
    expect(end.cause).toBe("exited");
    expect(out).toBe(`1\n${MIB}\n`);
  });

  it("takes sparse files and fallocate for what they are", async () => {
    const { files, listing } = await bash(
      jaild,
      "truncate -s 50M sparse; fallocate -l 70M f 2>&1 || echo refused; ls",
      {},
    );
    expect(files.sparse).toBe("new");
    expect(listing.files.find(({ path }) => path.toString() === "sparse")?.size).toBe(50 * MIB);
  });
});

describe("open files", () => {
  it("are limited", async () => {
    const { out } = await bash(jaild, "ulimit -n; ulimit -Hn", { limits: { openFiles: 100 } });
    expect(out).toBe("100\n100\n");
  });
});

describe("output", () => {
  it("keeps the first bytes of each stream, counts all, and goes on", async () => {
    const { end, stdout, stderr } = await bash(
      jaild,
      "head -c 300000 /dev/zero; head -c 200000 /dev/zero | tr '\\0' e >&2; exit 5",
    );
    expect(end).toMatchObject({ cause: "exited", exitCode: 5, stdoutTotal: 300_000, stderrTotal: 200_000 });
    expect([stdout.length, stderr.length]).toEqual([65_536, 65_536]);
  });

  it.each([
    ["stdout", "yes", "stdout_limit"],
    ["stderr", "yes >&2", "stderr_limit"],
    ["stdout of many processes", "for i in 1 2 3 4; do yes & done; wait", "stdout_limit"],
  ] as const)("ends a flood of %s", async (_name, script, cause) => {
    const { end } = await bash(jaild, script);
    expect(end.cause).toBe(cause);
  });

  it("keeps exactly the cap", async () => {
    for (const size of [99, 100, 101]) {
      const { stdout, end } = await bash(jaild, `head -c ${size} /dev/zero`, {
        limits: { stdoutCap: 100, killFactor: 2 },
      });
      expect([stdout.length, end.stdoutTotal, end.cause]).toEqual([Math.min(size, 100), size, "exited"]);
    }
  });

  it("does not wait for a child that holds the stream", async () => {
    const started = performance.now();
    const { out, end } = await bash(jaild, "(sleep 50) & (setsid sleep 50 &) ; echo done");
    expect([out, end.cause]).toEqual(["done\n", "exited"]);
    expect(performance.now() - started).toBeLessThan(slow(30_000));
  });

  it("does not wait for a stream that lies in a socket nobody can read", async () => {
    const { out } = await python(`import socket, array, os
a, b = socket.socketpair(socket.AF_UNIX)
for s in (a, b): s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1, 2, a.fileno(), b.fileno()]))])
print("done", flush=True)`);
    expect(out).toBe("done\n");
  });
});

describe("limits that do not end a run", () => {
  const reached = async (script: string, limits = {}) => (await bash(jaild, script, { limits })).end.reached;

  it.each([
    ["/mnt/data", "workspace_bytes", 64 * MIB],
    ["/tmp", "tmp_bytes", 16 * MIB],
    ["/dev/shm", "shm_bytes", 16 * MIB],
  ])("names a full %s, and not one with a page to spare", async (folder, limit, bytes) => {
    expect(await reached(`head -c ${bytes - 4096} /dev/zero > ${folder}/f`)).toEqual([]);
    expect(await reached(`head -c ${bytes + 1} /dev/zero > ${folder}/f`)).toEqual([{ limit, value: bytes }]);
  });

  it.each([
    ["/mnt/data", "workspace_files", 1000],
    ["/tmp", "tmp_files", 16_384],
    ["/dev/shm", "shm_files", 16_384],
  ])(
    "names a %s that can hold no more files, and not one with room for another",
    async (folder, limit, files) => {
      const make = (count: number) =>
        reached(`cd ${folder} && mkdir d && cd d && seq ${count} | xargs touch; true`);
      // The root and d are files too.
      expect(await make(files - 3)).toEqual([]);
      expect(await make(files - 1)).toEqual([{ limit, value: files }]);
    },
  );

  it("sees a file system that was full for a moment", async () => {
    const script = "head -c 100M /dev/zero > /tmp/f; sleep 0.5; rm /tmp/f";
    expect(await reached(script)).toEqual([{ limit: "tmp_bytes", value: 16 * MIB }]);
  });
});
