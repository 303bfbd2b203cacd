/** jaild and its control groups where these are of version 2: in whichever group it is started, and when the kernel kills. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killProcess } from "@svc/test-kit/jail/host";
import { BINARY, Jaild, type JaildOptions } from "@svc/test-kit/jail/jaild";
import { bash, runJob } from "@svc/test-kit/jail/run";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const TOP = "/sys/fs/cgroup";
const GROUP = join(TOP, "delegated");
const CONTROLLERS = ["cpu", "memory", "pids"];

const words = (group: string, file: string) =>
  readFileSync(join(group, file), "utf8").split(/\s+/).filter(Boolean);
const subgroups = (group: string) =>
  readdirSync(group, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

function remove(group: string): void {
  for (const name of subgroups(group)) remove(join(group, name));
  rmdirSync(group);
}

describe("jaild in a group that was given to it", () => {
  let folder: string;
  let binary: string;
  /** What ends the processes of a test, also of one that failed: the others need its group. */
  let ends: (() => Promise<void>)[];
  beforeEach(() => {
    ends = [];
    folder = mkdtempSync(join(tmpdir(), "svc-groups-"));
    binary = join(folder, "jaild");
    writeFileSync(binary, `#!/bin/bash\necho $$ > ${GROUP}/cgroup.procs\nexec ${BINARY} "$@"\n`);
    chmodSync(binary, 0o700);
    for (const controller of CONTROLLERS)
      writeFileSync(join(TOP, "cgroup.subtree_control"), `+${controller}`);
    mkdirSync(GROUP);
  });
  afterEach(async () => {
    for (const end of ends) await end();
    remove(GROUP);
    for (const controller of CONTROLLERS)
      writeFileSync(join(TOP, "cgroup.subtree_control"), `-${controller}`);
    rmSync(folder, { recursive: true });
  });

  async function startJaild(options: JaildOptions): Promise<Jaild> {
    const jaild = await Jaild.start({ binary, ...options });
    ends.push(() => jaild.stop());
    await jaild.full();
    return jaild;
  }

  function startOther(): ChildProcess {
    const other = spawn("/bin/sleep", ["1000"], { stdio: "ignore" });
    ends.push(() => end(other));
    return other;
  }

  async function end(other: ChildProcess): Promise<void> {
    if (other.exitCode !== null || other.signalCode !== null) return;
    const exit = once(other, "exit");
    killProcess(other.pid);
    await exit;
  }

  test("steps aside for its slots, and leaves the group as it was", async () => {
    const jaild = await startJaild({ slots: 2, args: ["--memory-bytes", `${512 << 20}`] });
    expect(words(GROUP, "cgroup.procs")).toEqual([]);
    expect(words(GROUP, "cgroup.subtree_control")).toEqual(expect.arrayContaining(CONTROLLERS));
    const own = join(GROUP, jaild.group);
    const [jails, self] = [join(own, "jails"), join(own, "jaild")];
    expect(subgroups(own).sort()).toEqual(["jaild", "jails"]);
    expect(subgroups(jails).sort()).toEqual(["slot-0", "slot-1"]);
    // What limits the jails does not limit jaild and its keepers.
    expect(words(jails, "memory.max")).toEqual([`${512 << 20}`]);
    expect(words(self, "cgroup.procs")).toEqual(
      expect.arrayContaining([jaild.pid, ...jaild.keepers].map(String)),
    );
    for (const group of [own, self]) expect(words(group, "memory.max")).toEqual(["max"]);
    expect((await bash(jaild, "echo inside")).out).toBe("inside\n");
    const greedy = await runJob(jaild, {
      argv: ["/usr/bin/python3", "-c", "x = bytearray(300 << 20)"],
      limits: { memoryBytes: 64 << 20 },
    });
    expect(greedy.end.cause).toBe("memory_limit");
    await jaild.stop();
    expect(jaild.exitCode).toBe(0);
    expect(subgroups(GROUP)).toEqual([]);
    expect(words(GROUP, "cgroup.subtree_control")).toEqual([]);
  });

  test("works below the group that it is given, beside other processes, also after it was killed", async () => {
    const services = join(GROUP, "services");
    mkdirSync(services);
    const other = startOther();
    writeFileSync(join(services, "cgroup.procs"), `${other.pid}`);
    writeFileSync(binary, `#!/bin/bash\necho $$ > ${services}/cgroup.procs\nexec ${BINARY} "$@"\n`);
    const jaild = await startJaild({ slots: 1, args: ["--cgroup-base", GROUP] });
    await jaild.kill("SIGKILL");
    await jaild.restart();
    expect((await bash(jaild, "echo inside")).out).toBe("inside\n");
    expect(subgroups(GROUP).sort()).toEqual(["services", jaild.group].sort());
    expect(words(services, "cgroup.procs")).toEqual([`${other.pid}`]);
    await jaild.stop();
    await end(other);
    rmdirSync(services);
    expect(subgroups(GROUP)).toEqual([]);
  });

  test("refuses to start where other processes are in its way", async () => {
    const other = startOther();
    writeFileSync(join(GROUP, "cgroup.procs"), `${other.pid}`);
    await expect(Jaild.start({ slots: 1, binary })).rejects.toThrow(/holds other processes/);
    expect(words(GROUP, "cgroup.procs")).toEqual([`${other.pid}`]);
    await end(other);
    expect(subgroups(GROUP)).toEqual([]);
  });
});

test("a program that outruns the sampling is killed by the kernel, with all its processes", async () => {
  const room = ["--workspace-bytes", "--tmp-bytes", "--shm-bytes"].flatMap((name) => [name, `${1 << 20}`]);
  const jaild = await Jaild.start({ slots: 1, args: room });
  const program = `import mmap, os, time
if os.fork() == 0: time.sleep(1000)
mmap.mmap(-1, 1 << 30, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x8000)
time.sleep(1000)`;
  let kills = 0;
  for (let i = 0; i < 10 && kills === 0; i++) {
    const { end } = await runJob(jaild, {
      argv: ["/usr/bin/python3", "-c", program],
      limits: { memoryBytes: 64 << 20 },
    });
    expect(end.cause).toBe("memory_limit");
    kills = end.oomKills;
  }
  expect(kills).toBeGreaterThanOrEqual(2);
  await jaild.stop();
});
