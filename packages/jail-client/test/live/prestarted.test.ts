import { readFileSync, readlinkSync } from "node:fs";
import { childrenOf, descendants, isAlive, killProcess, until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, LIMITS } from "@svc/test-kit/jail/run";
import { finishPython as finish } from "@svc/test-kit/jail/warm";
import { variables } from "@svc/test-kit/jail/zygotes";
import { afterEach, describe, expect, it } from "vitest";
import { JailRun } from "../../src/index.ts";
import { seenByHost } from "../support/confinement.ts";
import { describePrestarted, openPrestarted, prestartedOf, runPrestarted } from "../support/prestarted.ts";

let jaild: Jaild;
afterEach(() => jaild.stop());

const start = async (slots = 1) => {
  jaild = await Jaild.start({ slots, zygotes: false });
};

const main = (source: string) => ({ files: { "index.js": source } });

/** Starts a program that sleeps; answers its process as the host numbers it. */
async function sleeping(prestart: boolean) {
  const run = await openPrestarted(jaild, "javascript", prestart);
  await describePrestarted(run, main("process.title = 'asleep'; setTimeout(() => {}, 60000)"));
  await run.start();
  expect(run.startedWarm).toBe(prestart);
  const keeper = jaild.keepers.find((pid) => descendants(pid).length === 2);
  const [init = 0, program = 0] = descendants(keeper);
  await until(() => readFileSync(`/proc/${program}/comm`, "utf8") === "asleep\n", "the program sleeps");
  return { run, init, program };
}

describe("a program that starts in a pre-started Node", () => {
  it("is a child of the jail's pid 1, with its namespaces, groups, user and filter, as when it starts cold", async () => {
    await start();
    const cold = await sleeping(false);
    const { fds: _, ...expected } = seenByHost(cold.program);
    cold.run.close();
    await until(() => !isAlive(cold.init), "the jail is gone");
    await jaild.full();
    const { run, init, program } = await sleeping(true);
    const { fds, ...seen } = seenByHost(program);
    expect(seen).toEqual(expected);
    expect(fds.filter((fd) => Number(fd) >= 100)).toEqual([]);
    expect(childrenOf(init)).toEqual([program]);
    for (const kind of ["mnt", "pid", "net", "ipc", "uts", "user", "cgroup"])
      expect(readlinkSync(`/proc/${program}/ns/${kind}`)).toBe(readlinkSync(`/proc/${init}/ns/${kind}`));
    run.close();
  });

  it("is confined before its job comes", async () => {
    await start();
    const cold = await sleeping(false);
    const lines = (pid: number) =>
      readFileSync(`/proc/${pid}/status`, "utf8").match(
        /^(Uid|Gid|Groups|Cap\w+|NoNewPrivs|Seccomp\w*):.*/gm,
      );
    const expected = lines(cold.program);
    cold.run.close();
    await until(() => !isAlive(cold.init), "the jail is gone");
    await jaild.full();
    const waiting = await openPrestarted(jaild, "javascript", true);
    const [, program = 0] = descendants(jaild.keepers[0]);
    expect(lines(program)).toEqual(expected);
    waiting.close();
  });

  it("is not charged for the time before it came, and is for its memory", async () => {
    await start();
    const ends = [];
    for (const prestart of [false, true]) {
      const run = await openPrestarted(jaild, "javascript", prestart);
      await describePrestarted(run, main("globalThis.x = Buffer.alloc(50e6, 1)"));
      await run.start();
      ends.push((await run.outcome()).end);
      run.close();
    }
    const [cold, warm] = ends;
    expect(warm?.cpuUs).toBeGreaterThan(0);
    expect(warm?.cpuUs).toBeLessThan((cold?.cpuUs ?? 0) * 0.8);
    expect(warm?.memoryPeak).toBeGreaterThan((cold?.memoryPeak ?? 0) * 0.8);
    expect(warm?.memoryPeak).toBeGreaterThan(50e6);
  });

  it("has its own limits", async () => {
    await start();
    const many = main(
      "const fs = require('fs'); for (let n = 0; ; n++) try { fs.openSync('/etc/passwd') } catch (e) { console.log(e.code, n < 64); break }",
    );
    expect(await runPrestarted(jaild, true, { ...many, limits: { openFiles: 64 } })).toMatchObject({
      out: "EMFILE true\n",
      startedWarm: true,
    });
    const endless = main("for (;;);");
    expect(await runPrestarted(jaild, true, { ...endless, limits: { wallMs: 300 } })).toMatchObject({
      cause: "wall_limit",
      startedWarm: true,
    });
    expect(await runPrestarted(jaild, true, { ...endless, limits: { cpuMs: 200 } })).toMatchObject({
      cause: "cpu_limit",
      startedWarm: true,
    });
    const greedy = main("const all = []; for (;;) all.push(Buffer.alloc(16e6, 1))");
    expect(await runPrestarted(jaild, true, greedy)).toMatchObject({
      cause: "memory_limit",
      startedWarm: true,
    });
    expect(await runPrestarted(jaild, true, main("console.log(1)"))).toMatchObject({
      out: "1\n",
      cause: "exited",
      startedWarm: true,
    });
  });
});

describe("a jail with a pre-started Node", () => {
  it.each([
    ["its client leaves", -1],
    ["its first process dies", 0],
    ["Node dies", 1],
  ])("is gone when %s", async (_what, depth) => {
    await start();
    const run = await openPrestarted(jaild, "javascript", true);
    const below = descendants(jaild.keepers[0]);
    expect(below).toHaveLength(2);
    const gone = new Promise<void>((resolve) => run.onGone(resolve));
    if (depth === -1) run.close();
    else killProcess(below[depth]);
    await gone;
    await until(() => below.every((pid) => !isAlive(pid)), "the jail is dead");
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("takes any job, and executes it anew when it is none of its own", async () => {
    await start();
    const run = await openPrestarted(jaild, "javascript", true);
    const script = "echo $0 $$ $PPID; ls /proc/self/fd | wc -l; kill -PIPE $$";
    run.describe(["/bin/bash", "-c", script], ["PATH=/usr/bin"], LIMITS);
    expect(await finish(run)).toMatchObject({ out: "/bin/bash 2 1\n4\n", signal: 13, startedWarm: false });
  });

  it("is waited for on a machine on which it takes longer than ten seconds", async () => {
    await start();
    const { argv, env } = prestartedOf("javascript");
    const run = await JailRun.open(jaild.socket, new AbortController().signal);
    const late = ["/bin/bash", "-c", 'sleep 11; exec "$@"', "late", ...argv];
    expect(await run.prestart(late, variables(env), LIMITS)).toBe(true);
    await describePrestarted(run, main("console.log(1)"));
    expect(await finish(run)).toMatchObject({ out: "1\n", cause: "exited" });
  });

  it("is refused a second pre-start", async () => {
    await start();
    const run = await openPrestarted(jaild, "javascript", true);
    await expect(run.prestart(["/bin/true"], [], LIMITS)).rejects.toMatchObject({ kind: "protocol" });
    run.close();
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("is not there when the command ends before it waits", async () => {
    await start();
    const run = await openPrestarted(jaild, "javascript", false);
    await expect(run.prestart(["/bin/true"], [], LIMITS)).rejects.toMatchObject({ kind: "setup" });
    run.close();
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });
});
