/** Limits that control groups hold: processor time, memory and processes. Those of the virtual machine, which has version 2. */
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, runJob } from "@svc/test-kit/jail/run";
import { slow } from "@svc/test-kit/jail/slowness";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const MIB = 1 << 20;
let jaild: Jaild;
beforeAll(async () => {
  const rooms = [
    ["--workspace-bytes", `${64 * MIB}`],
    ["--tmp-bytes", `${16 * MIB}`],
    ["--shm-bytes", `${16 * MIB}`],
  ];
  jaild = await Jaild.start({ args: rooms.flat() });
});
afterAll(() => jaild.stop());

const python = (program: string, limits = {}) =>
  runJob(jaild, { argv: ["/usr/bin/python3", "-c", program], limits });

describe("processor time", () => {
  it("counts the processor time of all processes, and only processor time", async () => {
    const busy = await bash(jaild, "for i in 1 2; do (while :; do :; done) & done; wait", {
      limits: { cpuMs: 400 },
    });
    expect(busy.end.cause).toBe("cpu_limit");
    expect(busy.end.cpuUs).toBeGreaterThanOrEqual(400_000);
    expect(busy.end.cpuUs).toBeLessThan(400_000 + slow(500_000));
    const idle = await bash(jaild, "sleep 0.8", { limits: { cpuMs: 400 } });
    expect(idle.end.cause).toBe("exited");
  });
});

describe("the processor quota of the operator", () => {
  it("slows a run down to its share", async () => {
    const slow = await Jaild.start({ slots: 1, args: ["--cpu-percent", "30"] });
    const { end } = await bash(slow, "while :; do :; done", { limits: { wallMs: 1000 } });
    expect(end.cause).toBe("wall_limit");
    expect(end.cpuUs).toBeLessThan(450_000);
    await slow.stop();
  });
});

describe("memory", () => {
  it.each([
    ["one large block", "x = bytearray(600 << 20)"],
    ["many small ones", "l = []\nwhile True: l.append(bytearray(100000))"],
    [
      "many processes",
      "import os, time\nfor i in range(30):\n  if os.fork() == 0:\n    x = bytearray(16 << 20); time.sleep(9)\ntime.sleep(9)",
    ],
    [
      "memory files",
      "import os, mmap\nfds = [os.memfd_create(str(i)) for i in range(200)]\nfor f in fds: os.write(f, bytes(4 << 20))\nimport time; time.sleep(5)",
    ],
    [
      "a child only",
      "import os, time\nif os.fork() == 0: x = bytearray(600 << 20)\nos.wait(); time.sleep(0.2)",
    ],
    [
      "mapped shared pages",
      "import mmap\nm = mmap.mmap(-1, 600 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\nimport time; time.sleep(5)",
    ],
  ])("ends a run that takes too much: %s", async (_name, program) => {
    const { end } = await python(program, { memoryBytes: 128 * MIB });
    expect(end.cause).toBe("memory_limit");
  });

  it("leaves a run alone that stays below its limit while the file systems are full", async () => {
    const program = `import os
for path in ("/mnt/data/f", "/tmp/f", "/dev/shm/f"):
    try:
        with open(path, "wb", 0) as file:
            while True: file.write(bytes(1 << 20))
    except OSError as error: print(error.strerror)
x = bytearray(60 << 20)
for i in range(0, len(x), 4096): x[i] = 1
import time; time.sleep(0.3); print("fine")`;
    const { end, out } = await python(program, { memoryBytes: 100 * MIB });
    expect(out).toBe(`${"No space left on device\n".repeat(3)}fine\n`);
    expect(end).toMatchObject({ cause: "exited", exitCode: 0, oomKills: 0 });
    expect(end.memoryPeak).toBeGreaterThan(150 * MIB);
  });

  it("of a run does not count what the kernel still keeps of an earlier one on the slot", async () => {
    const single = await Jaild.start({ slots: 1 });
    const program = `import ctypes, os
libc = ctypes.CDLL(None)
prefix = b"/usr/lib/" + os.urandom(100).hex().encode()
for n in range(200_000): libc.access(b"%s%d" % (prefix, n), 0)`;
    try {
      const limits = { wallMs: 60_000, memoryBytes: 1024 * MIB };
      const asked = await runJob(single, { argv: ["/usr/bin/python3", "-c", program], limits });
      expect(asked.end).toMatchObject({ cause: "exited", exitCode: 0 });
      expect(asked.end.memoryPeak).toBeGreaterThan(60 * MIB);
      const next = await runJob(single, {
        argv: ["/usr/bin/python3", "-c", "x = b'1' * (40 << 20); import time; time.sleep(0.2)"],
        limits: { memoryBytes: 64 * MIB },
      });
      expect(next.end).toMatchObject({ cause: "exited", exitCode: 0 });
    } finally {
      await single.stop();
    }
  });

  it("reports at least what the kernel charges at once for a run that takes next to nothing", async () => {
    const single = await Jaild.start({ slots: 1 });
    for (let run = 0; run < 10; run++) {
      const { end } = await bash(single, "true");
      expect(end.memoryPeak).toBeGreaterThanOrEqual(256 * 1024);
    }
    await single.stop();
  });

  it("reports the peak of this run, not of an earlier one on the slot", async () => {
    const single = await Jaild.start({ slots: 1 });
    const large = await runJob(single, { argv: ["/usr/bin/python3", "-c", "x = b'1' * (200 << 20)"] });
    const small = await bash(single, "true");
    expect(large.end.memoryPeak).toBeGreaterThan(200 * MIB);
    expect(small.end.memoryPeak).toBeLessThan(20 * MIB);
    await single.stop();
  });
});

describe("processes", () => {
  it("lets a fork bomb fail by itself", async () => {
    const { end, err } = await bash(jaild, "f(){ f | f & }; f; sleep 1; exit 3", {
      limits: { processes: 40 },
    });
    expect(["exited", "wall_limit"]).toContain(end.cause);
    expect(err).toMatch(/Resource temporarily unavailable/);
  });

  it("allows exactly the processes and threads that were promised", async () => {
    const { out } = await python(
      `import threading, time
n = 1
try:
    while True:
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start(); n += 1
except RuntimeError: print(n, flush=True)
import os; os._exit(0)`,
      { processes: 20 },
    );
    expect(out).toBe("20\n");
  });

  const threads = (count: number) =>
    python(
      `import threading, time
for n in range(${count}): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
import os; os._exit(0)`,
      { processes: 20 },
    );

  it("names refused processes, and no more than what was allowed", async () => {
    const within = await threads(19);
    expect(within.end).toMatchObject({ cause: "exited", exitCode: 0, reached: [] });
    const beyond = await threads(20);
    expect(beyond.end).toMatchObject({ exitCode: 1, reached: [{ limit: "processes", value: 20 }] });
  });

  it("says nothing of the run before on the same slot", async () => {
    const single = await Jaild.start({ slots: 1 });
    // Unlike Bash, Python does not wait and try again when a fork is refused.
    const program = `import os, time
try:
    while os.fork(): pass
except OSError: os._exit(0)
time.sleep(60)`;
    const bomb = await runJob(single, {
      argv: ["/usr/bin/python3", "-c", program],
      limits: { processes: 10 },
    });
    expect(bomb.end.reached).toEqual([{ limit: "processes", value: 10 }]);
    expect((await bash(single, "true")).end.reached).toEqual([]);
    await single.stop();
  });
});
